"""The task modules that an operator names, imported into one registry of handlers (contract section 13)."""

import contextlib
import importlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from dtq.domain.text import class_name, text_of
from dtq.handlers.registry import Registry


class TaskModuleError(Exception):
    """A task module cannot be imported, or its declarations cannot stand as they are; the message names it."""


def load_registry(names: Iterable[str]) -> Registry:
    """Import the modules of these *names* and collect their handlers. Raises TaskModuleError.

    Modules of the current folder can be named. What a module prints while it is imported goes to stderr, so that
    stdout stays one document.
    """
    names = tuple(names)
    if not names:
        # the current folder must shadow nothing where nothing of it is asked for
        return Registry()
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    with contextlib.redirect_stdout(sys.stderr):
        modules = [_imported(name) for name in names]
    try:
        return Registry.from_modules(modules)
    except ValueError as error:
        raise TaskModuleError(str(error)) from error


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a stranger's code may raise anything, and exit as if all were well
        reason = f"{class_name(error)}: {text_of(error)}"
        raise TaskModuleError(f"the task module {name!r} cannot be imported: {reason}") from error
