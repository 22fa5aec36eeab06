"""The way straight to the broker, through the same use cases that the API serves."""

import socket
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from types import ModuleType

import msgspec
from msgspec.structs import replace

from dtq.application.admitting import Fields
from dtq.application.creating import Submitted as Admitted
from dtq.application.tasks import TaskView
from dtq.domain.audit import Actor
from dtq.domain.errors import DtqError
from dtq.domain.json_text import encoded
from dtq.entrypoints.client.results import Cancelled, Submission, Submitted, TaskState, fields_of
from dtq.entrypoints.config import load
from dtq.entrypoints.container import Container, build
from dtq.entrypoints.modules import load_registry
from dtq.entrypoints.views import full
from dtq.handlers.registry import Registry

OneTask = ModuleType | str | Callable[..., object]
Tasks = OneTask | Iterable[OneTask]
"""Task modules, their names, and functions that were declared with @task: one, or any number of them."""


class BrokerTransport:
    """The use cases of one container, on the event loop that first uses it."""

    def __init__(self, container: Container) -> None:
        self._container = container
        # made, and its modules loaded, before a loop runs that the first call would hold up meanwhile
        self._tasks = container.tasks()

    async def submit(self, submission: Submission) -> Submitted:
        """Submit a task; the use case itself sends it again under the same token where that is needed."""
        return _submitted(await self._tasks.submit(_fields(submission)))

    async def submit_many(self, submissions: Sequence[Submission]) -> Sequence[Submitted | DtqError]:
        """Submit tasks, each for itself."""
        answers = await self._tasks.submit_each(submissions, read=_fields)
        return [answer if isinstance(answer, DtqError) else _submitted(answer) for answer in answers]

    async def get(self, task_id: str) -> TaskState:
        """Return a task as it is."""
        return state_of(await self._tasks.get(task_id))

    async def ended(self, task_id: str, *, within: float) -> TaskState:
        """Return a task when it has ended, as its event tells."""
        return state_of(await self._container.waiting().ended(task_id, within=timedelta(seconds=within)))

    async def cancel(self, task_id: str) -> Cancelled:
        """Cancel a waiting task, in this host's name."""
        by = Actor(name=f"client@{socket.gethostname()}", request_id=self._container.ids().token())
        task = await self._tasks.cancel(task_id, by=by)
        return Cancelled(task_id=task.task_id, status=task.status)

    async def close(self) -> None:
        """Let go of every connection."""
        await self._container.fan_out().closed()
        await self._container.backend().server.close()


def connect(url: str, *, tasks: Tasks) -> BrokerTransport:
    """Make the way to the broker of *url*; other settings are those of the environment.

    Only the task types of *tasks* can be submitted, or where there are none those of DTQ_TASK_MODULES.
    """
    loaded = load(options={"DTQ_REDIS_URL": url})
    settings = loaded.settings
    if "DTQ_LOG_LEVEL" not in loaded.given:
        # what it does is its caller's to tell
        settings = replace(settings, log_level="WARNING")
    registry = registry_of(tasks)
    return BrokerTransport(build(settings, registry=registry or load_registry(settings.modules), service="client"))


def registry_of(tasks: Tasks) -> Registry:
    """Collect the handlers of modules and of declared functions. Raises TypeError for anything else."""
    return Registry(handler for one in _each(tasks) for handler in _registry_of_one(one))


def _each(tasks: object) -> Iterable[object]:
    return tasks if isinstance(tasks, Iterable) and not isinstance(tasks, str) and not callable(tasks) else [tasks]


def _registry_of_one(one: object) -> Registry:
    if isinstance(one, ModuleType):
        return Registry.from_modules([one])
    if isinstance(one, str):
        return load_registry([one])
    if callable(one):
        return Registry.of(one)
    raise TypeError(f"{one!r} is neither a task module, nor the name of one, nor a function with @task")


def state_of(view: TaskView) -> TaskState:
    """Show a task as every transport does."""
    return msgspec.json.decode(msgspec.json.encode(full(view)), type=TaskState)


def _fields(submission: Submission) -> Fields:
    # what was written is read in the same process, by whoever admits it: that need not be done twice
    return fields_of(submission, write=encoded)


def _submitted(admitted: Admitted) -> Submitted:
    status = None if admitted.task is None else admitted.task.status
    return Submitted(task_id=admitted.task_id, status=status, duplicate=admitted.duplicate)
