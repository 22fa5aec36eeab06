"""Handlers by name: what a task type may run. Nothing else is ever executed (contract section 13)."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType, ModuleType
from typing import Any, Final, NoReturn, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dtq.domain.admission import TASK_TYPE_PATTERN
from dtq.domain.errors import FieldProblem
from dtq.handlers.payload import JsonSchema, PayloadInvalid, PayloadType, payload_type, signature_of

_MARK: Final = "__dtq_handler__"
_DECLARED: Final = "__dtq_declared__"
F = TypeVar("F", bound=Callable[..., object])


class Handler(Struct, frozen=True, kw_only=True):
    """A registered function ``(payload, ctx: TaskContext) -> JSON-serializable``.

    ``payload`` is the type that was declared beside the function; None leaves it to the annotation. In a registry it
    is what that came to, whatever the function is wrapped in later; None where any object will do.
    """

    name: str
    function: Callable[..., object]
    is_async: bool
    retry_on: tuple[type[BaseException], ...] = ()
    cpu_bound: bool = False
    payload: Any = None


class DuplicateHandler(ValueError):
    """Two functions claim one task type, or one name in their module."""


class _Declared(Struct, frozen=True, kw_only=True):
    """What one execution of a module has declared at its top level; *spec* is its own, also where it is reloaded."""

    spec: object
    handlers: list[Handler]


def task(
    name: str, *, retry_on: tuple[type[BaseException], ...] = (), cpu_bound: bool = False, payload: Any = None
) -> Callable[[F], F]:
    """Declare a module-level function as the handler of the task type *name*.

    It is found when its module is named in DTQ_TASK_MODULES or ``--tasks``. Exceptions of the classes in *retry_on*
    are retried beside those that always are. *cpu_bound* marks a handler that holds the interpreter while it runs.
    *payload* is the type of its payload, a msgspec Struct, a TypedDict or a dataclass, where the annotation of the
    first parameter does not say it: payloads that are not of this type are refused, and the handler is given one.
    Raises TypeError where the name is left out, and for a function that cannot be called with a payload and a context;
    ValueError for a name outside ``[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}``, for what is no exception class in
    *retry_on*, and for a second declaration of one function. Other decorators stand below this one. Of two functions of
    one module that share a task type or a Python name none counts: where the module is collected, that is refused.
    """
    _refuse_other_names(name)
    if not _are_exceptions(retry_on):
        message = f"retry_on of {name!r} must be a tuple of exception classes, not {retry_on!r}"
        raise ValueError(message)

    def declare(function: F) -> F:
        if _MARK in getattr(function, "__dict__", {}):
            message = f"{function!r} is declared as a task already"
            raise DuplicateHandler(message)
        _refuse_other_parameters(function, name=name)
        is_async = any(inspect.iscoroutinefunction(layer) for layer in _layers(function))
        handler = Handler(
            name=name,
            function=function,
            is_async=is_async,
            retry_on=retry_on,
            cpu_bound=cpu_bound,
            payload=payload,
        )
        setattr(function, _MARK, handler)
        _note(handler, frame=inspect.currentframe())
        return function

    return declare


class Registry:
    """The handlers that one process knows, by task type."""

    def __init__(self, handlers: Iterable[Handler] = ()) -> None:
        """Collect *handlers*. Raises DuplicateHandler where two different functions share a name.

        Raises PayloadTypeError where a handler's payload cannot be what it is declared to be.
        """
        known: dict[str, Handler] = {}
        for handler in handlers:
            other = known.setdefault(handler.name, handler)
            if other.function is not handler.function:
                message = f"task type {handler.name!r} is declared by {_where(other)} and by {_where(handler)}"
                raise DuplicateHandler(message)
        # not when they are declared: what their annotations name may stand further down in the module
        self._known: Mapping[str, Handler] = {name: _resolved(handler) for name, handler in known.items()}
        self.get: Final[Callable[[str], Handler | None]] = self._known.get
        """Returns the handler of a task type, or None where there is none; the table's own, since each task asks."""

    @classmethod
    def of(cls, *functions: Callable[..., object]) -> "Registry":
        """Collect functions that were declared with ``@task``. Raises ValueError for any other."""
        return cls(_declared(function) for function in functions)

    @classmethod
    def from_modules(cls, modules: Iterable[ModuleType]) -> "Registry":
        """Collect every declared function at the top level of *modules*.

        Raises DuplicateHandler, and ValueError where another decorator stands above ``@task``, or where what was
        declared is not to be found under any name.
        """
        return cls(handler for module in modules for handler in _declared_in(module))

    @property
    def task_types(self) -> frozenset[str]:
        """The names that can be submitted and run here."""
        return frozenset(self._known)

    def payload_problem(self, task_type: str, text: str) -> FieldProblem | None:
        """Say what keeps *text*, a JSON object, from being a payload of *task_type*, or None."""
        kind = self._payload_type(task_type)
        if kind is None:
            return None
        try:
            kind.read(text)
        except PayloadInvalid as error:
            return error.problem
        return None

    def payload_schema(self, task_type: str) -> JsonSchema:
        """Describe the payload of *task_type* as JSON Schema; any object will do where no type is declared."""
        kind = self._payload_type(task_type)
        return {"type": "object"} if kind is None else kind.schema()

    def _payload_type(self, task_type: str) -> PayloadType | None:
        handler = self._known.get(task_type)
        return None if handler is None else handler.payload

    def __iter__(self) -> Iterator[Handler]:
        """Go through the handlers in the order of their names."""
        return iter(sorted(self._known.values(), key=lambda handler: handler.name))

    def __len__(self) -> int:
        """Count the handlers."""
        return len(self._known)


def _resolved(handler: Handler) -> Handler:
    kind = payload_type(handler.function, declared=handler.payload, owner=f"task type {handler.name!r}")
    return replace(handler, payload=kind)


def _refuse_other_names(name: object) -> None:
    if not isinstance(name, str):
        message = f'@task needs the name of its task type, as in @task("charge"), not {name!r}'
        raise TypeError(message)
    if not TASK_TYPE_PATTERN.fullmatch(name):
        message = f"task type {name!r} must match {TASK_TYPE_PATTERN.pattern}"
        raise ValueError(message)


def _refuse_other_parameters(function: Callable[..., object], *, name: str) -> None:
    try:
        # what is called is the outermost wrapper, whatever it wraps
        signature = signature_of(function, follow_wrapped=False)
    except (TypeError, ValueError):
        # a builtin tells nothing of its parameters
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        called = getattr(function, "__qualname__", repr(function))
        message = f"task type {name!r}: {called} is called with a payload and a context, which it cannot take: {error}"
        raise TypeError(message) from error


def _note(handler: Handler, *, frame: FrameType | None) -> None:
    """Remember in its module what is declared at its top level, whatever the name comes to stand for later."""
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_locals is not caller.f_globals:
        return
    names = caller.f_globals
    declared = names.get(_DECLARED)
    if not isinstance(declared, _Declared) or declared.spec is not names.get("__spec__"):
        declared = names[_DECLARED] = _Declared(spec=names.get("__spec__"), handlers=[])
    declared.handlers.append(handler)


def _declared_in(module: ModuleType) -> Iterator[Handler]:
    found = [_declared(value) for value in vars(module).values() if _mark_of(value) is not None]
    yield from found
    noted = vars(module).get(_DECLARED)
    for handler in noted.handlers if isinstance(noted, _Declared) else ():
        if not any(one.function is handler.function for one in found):
            _refuse_hidden(handler, found=found)


def _refuse_hidden(handler: Handler, *, found: Iterable[Handler]) -> NoReturn:
    name = getattr(handler.function, "__name__", None)
    for other in found:
        has_same_name = name is not None and getattr(other.function, "__name__", None) == name
        if other.name == handler.name or has_same_name:
            message = (
                f"task type {handler.name!r}: {_where(handler)} is declared twice, and the second, task type "
                f"{other.name!r}, hides the first; give each task a function and a task type of its own"
            )
            raise DuplicateHandler(message)
    message = (
        f"task type {handler.name!r}: {_where(handler)} has no name in its module; "
        "put @task on top of other decorators, and use the name of its function for nothing else"
    )
    raise ValueError(message)


def _declared(function: Callable[..., object]) -> Handler:
    handler = _mark_of(function)
    if handler is None:
        message = f"{function!r} is not declared with @task"
        raise ValueError(message)
    if handler.function is not function:
        # functools.wraps has copied the mark: the outer decorator would be left out without a word
        message = f"task type {handler.name!r}: a decorator stands above @task; put @task on top of it"
        raise ValueError(message)
    return handler


def _mark_of(value: object) -> Handler | None:
    mark = getattr(value, "__dict__", {}).get(_MARK)
    return mark if isinstance(mark, Handler) else None


def _are_exceptions(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, type) and issubclass(one, BaseException) for one in value)


def _layers(function: Callable[..., object]) -> Iterator[Callable[..., object]]:
    """Go through partials, wrappers and callable objects down to what will really be called."""
    while True:
        yield function
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isfunction(function) or inspect.ismethod(function) or inspect.isbuiltin(function):
            return
        else:
            yield getattr(function, "__call__", function)  # noqa: B004 - the bound method is wanted, not a test
            return


def _where(handler: Handler) -> str:
    function = handler.function
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
