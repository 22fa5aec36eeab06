"""What a test gives its app: tasks and settings, refused in words where they cannot be meant."""

import difflib
from collections.abc import Iterator, Mapping

from dtq.entrypoints.client.direct import Tasks, registry_of
from dtq.entrypoints.config import Settings, SettingsError, load, variable
from dtq.handlers.registry import Registry


def registry_given(tasks: Tasks | Registry | None) -> Registry:
    """Collect the handlers of a test. Raises ValueError where there are none, and TypeError for what is no task."""
    registry = tasks if isinstance(tasks, Registry) else registry_of(() if tasks is None else tasks)
    if not len(registry):
        raise ValueError(
            f"there are no tasks: {tasks!r} has no function that is declared with @task. Let the fixture dtq_tasks "
            "return task modules, their names, or declared functions, one or a list of them; or name the modules in "
            "pytest's setting dtq_task_modules"
        )
    return registry


def settings_given(settings: Mapping[str, str] | None) -> Settings:
    """Read the settings of a test. Raises SettingsError, for names that are no settings too."""
    given = settings or {}
    faults = list(_faults(given))
    if faults:
        raise SettingsError(faults)
    return load(environment=given).settings


def _faults(given: Mapping[str, object]) -> Iterator[str]:
    names = [variable(field) for field in Settings.__struct_fields__]
    for name, value in given.items():
        if name not in names:
            meant = difflib.get_close_matches(variable(name), names, n=1) or difflib.get_close_matches(name, names, n=1)
            yield f"{name} is no setting of dtq" + (f"; {meant[0]} is" if meant else "")
        elif not isinstance(value, str):
            yield f"{name} must be given as text, {str(value)!r}"
