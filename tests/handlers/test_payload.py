"""What a handler declares its payload to be is judged, read and published."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest
from msgspec import Meta, Struct
from msgspec.structs import replace

from dtq.domain.admission import AdmissionRules, admit
from dtq.domain.errors import FieldProblem, InvalidTask, UnknownTaskType
from dtq.domain.json_text import JsonProblem
from dtq.handlers import Registry, TaskContext, task
from dtq.handlers.payload import PayloadInvalid, PayloadType, PayloadTypeError, read_payload


class User(Struct):
    name: str
    age: Annotated[int, Meta(ge=0)]


class Order(Struct, forbid_unknown_fields=True):
    user: User
    notes: list[User] = []
    by_name: dict[str, User] = {}
    color: Literal["red", "green"] = "red"


class Created(Struct, tag="created"):
    at: int


class Deleted(Struct, tag="deleted"):
    reason: str


class Point(TypedDict):
    x: int


@dataclass
class Spot:
    x: int


class Careful(Struct):
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")
        if self.low < 0:
            raise KeyError(self.low)


@task("order")
async def order(payload: Order, ctx: TaskContext) -> str:
    del ctx
    return payload.user.name


@task("late")
def late(payload: "Order", ctx: "Hidden") -> str:  # type: ignore[name-defined]  # noqa: F821 - as it says
    del ctx
    return payload.user.name


@task("told", payload=Order)
def told(payload: Any, ctx: TaskContext) -> Any:
    del ctx
    return payload


@task("event")
def event(payload: Created | Deleted, ctx: TaskContext) -> object:
    return payload, ctx


@task("point")
def point(payload: Point, ctx: TaskContext) -> object:
    return payload, ctx


@task("spot")
def spot(payload: Spot, ctx: TaskContext) -> object:
    return payload, ctx


@task("careful")
def careful(payload: Careful, ctx: TaskContext) -> object:
    return payload, ctx


@task("bare")
def bare(payload, ctx):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - a handler without annotations
    return payload, ctx


@task("plain")
def plain(payload: dict[str, int], ctx: TaskContext) -> object:
    return payload, ctx


@task("mapping")
def mapping(payload: Mapping[str, Any], ctx: TaskContext) -> object:
    return payload, ctx


@task("text")
def text(payload: "Mapping[str, Hidden]", ctx: TaskContext) -> object:  # type: ignore[name-defined]  # noqa: F821 - as it says
    return payload, ctx


@task("maybe")
def maybe(payload: dict[str, Any] | None, ctx: TaskContext) -> object:
    return payload, ctx


TYPED = Registry.of(order, late, told, event, point, spot, careful)
PLAIN = Registry.of(bare, plain, mapping, text, maybe)
GOOD = '{"user": {"name": "Ada", "age": 36}}'


@pytest.mark.parametrize(
    ("payload", "field", "problem"),
    [
        ('{"user": {"name": "Ada", "age": "36"}}', "payload.user.age", "expected `int`, got `str`"),
        ('{"user": {"name": "Ada", "age": -1}}', "payload.user.age", "expected `int` >= 0"),
        ('{"user": {"name": "Ada"}}', "payload.user.age", "required"),
        ("{}", "payload.user", "required"),
        ('{"user": {"name": "Ada", "age": 1}, "more": 1}', "payload.more", "unknown field"),
        ('{"user": {"name": "A", "age": 1}, "notes": [{"name": "B"}]}', "payload.notes[0].age", "required"),
        ('{"user": {"name": "A", "age": 1}, "by_name": {"secret": 1}}', "payload.by_name[...]", "expected `object`"),
        ('{"user": {"name": "A", "age": 1}, "color": "secret"}', "payload.color", "invalid enum value: see the"),
    ],
)
@pytest.mark.parametrize("task_type", ["order", "late", "told"])
def test_a_payload_of_another_type_is_refused_by_its_field(
    task_type: str, payload: str, field: str, problem: str
) -> None:
    found = TYPED.payload_problem(task_type, payload)

    assert found is not None
    assert field == found.field
    assert found.problem.startswith(problem)
    assert "secret" not in f"{found.field} {found.problem}"


def read(task_type: str, text: str, *, of: Registry = TYPED) -> object:
    handler = of.get(task_type)
    assert handler is not None
    return read_payload(text, kind=handler.payload)


@pytest.mark.parametrize("task_type", ["order", "late", "told"])
def test_the_handler_is_given_what_it_declares(task_type: str) -> None:
    assert TYPED.payload_problem(task_type, GOOD) is None
    assert Order(user=User(name="Ada", age=36)) == read(task_type, GOOD)


def test_typed_dicts_dataclasses_and_tagged_unions_are_types_too() -> None:
    assert {"x": 1} == read("point", '{"x": 1}')
    assert Spot(x=1) == read("spot", '{"x": 1}')
    assert Deleted(reason="old") == read("event", '{"type": "deleted", "reason": "old"}')
    assert FieldProblem("payload.x", "required") == TYPED.payload_problem("point", "{}")
    assert FieldProblem("payload.type", "required") == TYPED.payload_problem("event", "{}")


def test_what_the_types_own_check_raises_is_a_problem_of_the_payload() -> None:
    assert FieldProblem("payload", "low is above high") == TYPED.payload_problem("careful", '{"low": 2, "high": 1}')
    assert FieldProblem("payload", "KeyError: -1") == TYPED.payload_problem("careful", '{"low": -1, "high": 1}')


@pytest.mark.parametrize("task_type", ["bare", "plain", "mapping", "text", "maybe"])
def test_a_handler_of_plain_objects_takes_any(task_type: str) -> None:
    assert PLAIN.payload_problem(task_type, '{"a": "text"}') is None
    assert {"a": "text"} == read(task_type, '{"a": "text"}', of=PLAIN)
    assert {"type": "object"} == PLAIN.payload_schema(task_type)


@pytest.mark.parametrize("task_type", ["order", "point"])
def test_what_is_no_object_is_no_payload_at_all(task_type: str) -> None:
    with pytest.raises(JsonProblem):
        read(task_type, "[1]")
    with pytest.raises(JsonProblem):
        read(task_type, "")


def test_reading_says_what_judging_says() -> None:
    with pytest.raises(PayloadInvalid, match=r"payload\.user: required"):
        read("order", "{}")


def test_a_handler_that_is_wrapped_later_keeps_its_type() -> None:
    def outer(payload: object, ctx: TaskContext) -> object:
        return payload, ctx

    wrapped = Registry(replace(handler, function=outer) for handler in TYPED)

    assert isinstance(read("order", GOOD, of=wrapped), Order)


def test_the_type_is_published_as_a_schema() -> None:
    schema = TYPED.payload_schema("order")

    assert {"$ref": "#/$defs/Order"} == {name: value for name, value in schema.items() if name != "$defs"}
    assert ["user"] == schema["$defs"]["Order"]["required"]
    assert {"type": "integer", "minimum": 0} == schema["$defs"]["User"]["properties"]["age"]


class NoStruct:
    pass


class Holder(Struct):
    inner: NoStruct


def a_handler_of(annotation: Any) -> Callable[..., object]:
    def function(payload: Any, ctx: TaskContext) -> object:
        return payload, ctx

    function.__annotations__["payload"] = annotation
    return task("wrong")(function)


@pytest.mark.parametrize("annotation", [NoStruct, Order | None, Spot | Order, "Nowhere", "Order | None"])
def test_a_type_that_no_object_can_be_is_refused_when_the_registry_is_made(annotation: Any) -> None:
    with pytest.raises(PayloadTypeError, match="task type 'wrong'"):
        Registry.of(a_handler_of(annotation))


@pytest.mark.parametrize("declared", [int, list[Order], NoStruct, Holder])
def test_a_declared_type_must_be_one_for_objects(declared: Any) -> None:
    with pytest.raises(PayloadTypeError, match="msgspec Struct, a TypedDict, a dataclass"):
        Registry.of(task("wrong", payload=declared)(lambda payload, ctx: (payload, ctx)))


RULES = AdmissionRules(task_types=TYPED.task_types, payload_problem=TYPED.payload_problem)


def test_a_submission_is_held_to_the_type_of_its_handler() -> None:
    assert GOOD == admit({"task_type": "order", "payload": GOOD}, rules=RULES).payload
    with pytest.raises(InvalidTask) as refused:
        admit({"task_type": "order", "payload": '{"user": {"name": "Ada"}}'}, rules=RULES)

    assert (FieldProblem("payload.user.age", "required"),) == refused.value.problems


def test_the_type_is_looked_at_once_the_rest_is_sound() -> None:
    with pytest.raises(InvalidTask) as refused:
        admit({"task_type": "order", "payload": "{}", "priority": 10}, rules=RULES)
    with pytest.raises(UnknownTaskType):
        admit({"task_type": "nothing", "payload": "{}"}, rules=RULES)

    assert ["priority"] == [problem.field for problem in refused.value.problems]


class Mute(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
        (Mute(), "Mute: no message: __str__ raised SystemExit"),
        (type("A\nB", (Exception,), {})("c\nd"), "A B: c d"),
    ],
    ids=["exit", "interrupt", "mute", "named"],
)
def test_whatever_a_type_raises_while_it_is_read_is_a_fault_of_the_payload(error: BaseException, told: str) -> None:
    class Moody(Struct):
        def __post_init__(self) -> None:
            raise error

    with pytest.raises(PayloadInvalid) as caught:
        PayloadType(Moody, owner="moody").read("{}")

    assert ("payload", told) == (caught.value.problem.field, caught.value.problem.problem)
