"""Handlers by name: what a task type may run. Nothing else is ever executed (contract section 13)."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Final, TypeVar

from msgspec import Struct

from dtq.domain.admission import TASK_TYPE_PATTERN

_MARK: Final = "__dtq_handler__"
F = TypeVar("F", bound=Callable[..., object])


class Handler(Struct, frozen=True, kw_only=True):
    """A registered function ``(payload: dict, ctx: TaskContext) -> JSON-serializable``."""

    name: str
    function: Callable[..., object]
    is_async: bool
    retry_on: tuple[type[BaseException], ...] = ()
    cpu_bound: bool = False


class DuplicateHandler(ValueError):
    """Two functions claim one task type."""


def task(name: str, *, retry_on: tuple[type[BaseException], ...] = (), cpu_bound: bool = False) -> Callable[[F], F]:
    """Declare a module-level function as the handler of the task type *name*.

    It is found when its module is named in DTQ_TASK_MODULES or ``--tasks``. Exceptions of the classes in *retry_on*
    are retried beside those that always are. *cpu_bound* marks a handler that holds the interpreter while it runs.
    Raises ValueError for a name outside ``[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}`` or a second declaration of one function.
    """
    if not TASK_TYPE_PATTERN.fullmatch(name):
        message = f"task type {name!r} must match {TASK_TYPE_PATTERN.pattern}"
        raise ValueError(message)

    def declare(function: F) -> F:
        if _MARK in getattr(function, "__dict__", {}):
            message = f"{function!r} is declared as a task already"
            raise DuplicateHandler(message)
        is_async = inspect.iscoroutinefunction(_innermost(function))
        handler = Handler(
            name=name, function=function, is_async=is_async, retry_on=tuple(retry_on), cpu_bound=cpu_bound
        )
        setattr(function, _MARK, handler)
        return function

    return declare


class Registry:
    """The handlers that one process knows, by task type."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        """Collect *handlers*. Raises DuplicateHandler where two different functions share a name."""
        known: dict[str, Handler] = {}
        for handler in handlers:
            other = known.setdefault(handler.name, handler)
            if other.function is not handler.function:
                message = f"task type {handler.name!r} is declared by {_where(other)} and by {_where(handler)}"
                raise DuplicateHandler(message)
        self._known: Mapping[str, Handler] = known

    @classmethod
    def of(cls, *functions: Callable[..., object]) -> "Registry":
        """Collect functions that were declared with ``@task``."""
        return cls(getattr(function, _MARK) for function in functions)

    @classmethod
    def from_modules(cls, modules: Iterable[ModuleType]) -> "Registry":
        """Collect every declared function at the top level of *modules*."""
        return cls(handler for module in modules for handler in _declared_in(module))

    @property
    def task_types(self) -> frozenset[str]:
        """The names that can be submitted and run here."""
        return frozenset(self._known)

    def get(self, task_type: str) -> Handler | None:
        """Return the handler of *task_type*, or None where there is none."""
        return self._known.get(task_type)

    def __iter__(self) -> Iterator[Handler]:
        """Go through the handlers in the order of their names."""
        return iter(sorted(self._known.values(), key=lambda handler: handler.name))

    def __len__(self) -> int:
        """Count the handlers."""
        return len(self._known)


def _declared_in(module: ModuleType) -> Iterator[Handler]:
    for value in vars(module).values():
        handler = getattr(value, "__dict__", {}).get(_MARK)
        if isinstance(handler, Handler):
            yield handler


def _innermost(function: Callable[..., object]) -> Callable[..., object]:
    """Look through partials, wrappers and callable objects to what will really be called."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if inspect.isfunction(function) or inspect.ismethod(function):
        return function
    return getattr(function, "__call__", function)  # noqa: B004 - the bound method is wanted, not a test


def _where(handler: Handler) -> str:
    function = handler.function
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
