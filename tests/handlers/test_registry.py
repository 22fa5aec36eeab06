"""How handlers are declared and found."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import dtq
from dtq.handlers import Handler, Registry, TaskContext, task
from dtq.handlers.registry import DuplicateHandler


@task("echo", retry_on=(KeyError,), cpu_bound=True)
def echo(payload: dict[str, Any], context: TaskContext) -> object:
    return payload, context


@task("wait")
async def wait(payload: dict[str, Any], context: TaskContext) -> object:
    return payload, context


def a_module(**members: object) -> ModuleType:
    module = ModuleType("tasks")
    vars(module).update(members)
    return module


def wrapped(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def outer(*arguments: object) -> object:
        return function(*arguments)

    return outer


def async_wrapped(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    async def outer(*arguments: object) -> object:
        return function(*arguments)

    return outer


class CallableObject:
    async def __call__(self, payload: dict[str, Any], context: TaskContext) -> object:
        return payload, context


async def plain_async(payload: dict[str, Any], context: TaskContext) -> object:
    return payload, context


def plain(payload: dict[str, Any], context: TaskContext) -> object:
    return payload, context


def test_a_declared_function_stays_the_function_it_was() -> None:
    assert ({"a": 1}, None) == echo({"a": 1}, None)  # type: ignore[arg-type]  # no context is looked at


def test_a_handler_is_found_by_its_name() -> None:
    registry = Registry.of(echo, wait)

    assert frozenset({"echo", "wait"}) == registry.task_types
    assert Handler(name="echo", function=echo, is_async=False, retry_on=(KeyError,), cpu_bound=True) == (
        registry.get("echo")
    )
    assert registry.get("nobody") is None
    assert ["echo", "wait"] == [handler.name for handler in registry]
    assert 2 == len(registry)


@pytest.mark.parametrize("name", ["", "-a", "a b", "a" * 129, "a\n", "ä"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must match"):
        task(name)


@pytest.mark.parametrize("name", ["a", "A.b:c-d_e", "a" * 128, "0"])
def test_a_good_name_is_taken(name: str) -> None:
    assert [name] == [handler.name for handler in Registry.of(task(name)(wrapped(plain)))]


@pytest.mark.parametrize("retry_on", [KeyError, [KeyError], (KeyError, "ValueError"), (KeyError(),)])
def test_what_is_no_tuple_of_exception_classes_is_refused(retry_on: Any) -> None:
    with pytest.raises(ValueError, match="must be a tuple of exception classes"):
        task("listed", retry_on=retry_on)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (wrapped(plain), False),
        (wrapped(plain_async), True),
        (async_wrapped(plain), True),
        (functools.partial(plain_async), True),
        (functools.partial(functools.partial(plain_async)), True),
        (functools.partial(plain), False),
        (functools.partial(wrapped(plain_async)), True),
        (CallableObject(), True),
    ],
)
def test_async_handlers_are_told_apart_through_wrappers(function: Callable[..., object], *, expected: bool) -> None:
    (handler,) = Registry.of(task("some")(function))

    assert expected == handler.is_async


def test_a_function_is_declared_once() -> None:
    with pytest.raises(DuplicateHandler, match="declared as a task already"):
        task("again")(echo)


def test_two_functions_may_not_share_a_name() -> None:
    first, second = task("same")(wrapped(plain)), task("same")(wrapped(plain))

    with pytest.raises(DuplicateHandler, match=r"'same' is declared by .*plain and by .*plain"):
        Registry.of(first, second)


def test_modules_give_what_is_declared_in_them() -> None:
    registry = Registry.from_modules([a_module(echo=echo, other=plain, number=1), a_module(again=echo, wait=wait)])

    assert frozenset({"echo", "wait"}) == registry.task_types


def test_a_decorator_above_task_is_refused_instead_of_left_out() -> None:
    covered = wrapped(task("covered")(wrapped(plain)))

    with pytest.raises(ValueError, match="put @task on top"):
        Registry.from_modules([a_module(covered=covered)])


def test_an_undeclared_function_is_refused() -> None:
    with pytest.raises(ValueError, match="not declared with @task"):
        Registry.of(plain)


def test_the_public_names_are_at_the_top() -> None:
    assert (dtq.task, dtq.TaskContext) == (task, TaskContext)
    assert {"PermanentError", "RetryableError", "idempotent_operation"} < set(dtq.__all__)


@pytest.mark.parametrize("name", [plain, None, 5])
def test_a_declaration_without_a_name_is_told_so(name: Any) -> None:
    with pytest.raises(TypeError, match=r'@task needs the name of its task type, as in @task\("charge"\), not '):
        task(name)


def nothing() -> None: ...
def payload_only(payload: dict[str, Any]) -> None: ...
def three(payload: dict[str, Any], context: TaskContext, more: int) -> None: ...
def by_name(*, payload: dict[str, Any], context: TaskContext) -> None: ...


@pytest.mark.parametrize("function", [nothing, payload_only, three, by_name, functools.partial(plain, {})])
def test_a_handler_that_cannot_take_payload_and_context_is_refused(function: Callable[..., object]) -> None:
    with pytest.raises(
        TypeError, match=r"task type 'bad': .* is called with a payload and a context, which it cannot take: "
    ):
        task("bad")(function)


def with_default(payload: dict[str, Any], context: TaskContext, more: int = 0) -> None: ...
def any_number(*arguments: object) -> None: ...


def injecting(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def outer(payload: object, context: object) -> object:
        return function(payload, context, 5)

    return outer


@pytest.mark.parametrize("function", [with_default, any_number, injecting(three), functools.partial(three, more=1)])
def test_a_handler_that_can_take_payload_and_context_may_take_more(function: Callable[..., object]) -> None:
    assert ["good"] == [handler.name for handler in Registry.of(task("good")(function))]
