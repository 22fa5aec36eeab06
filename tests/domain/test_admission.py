from collections.abc import Mapping
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.admission import FIELDS, AdmissionRules, BrokerLimits, TaskSpec, admit
from dtq.domain.errors import FieldProblem, InvalidTask, PayloadTooLarge, UnknownTaskType
from tests.domain.factories import RULES

MINIMAL: Mapping[str, object] = {"task_type": "echo_task", "payload": "{}"}
NAN = float("nan")
INFINITY = float("inf")


def admitted(**fields: object) -> TaskSpec:
    return admit({**MINIMAL, **fields}, rules=RULES)


def blamed(**fields: object) -> list[str]:
    """The names of the fields that are blamed."""
    return [problem.field for problem in problems(**fields)]


def problems(**fields: object) -> tuple[FieldProblem, ...]:
    with pytest.raises(InvalidTask) as refusal:
        admitted(**fields)
    return refusal.value.problems


def test_the_defaults_are_the_contracts() -> None:
    expected = TaskSpec(
        task_type="echo_task",
        payload="{}",
        queue=admitted().queue,
        idempotency_key=None,
        max_attempts=5,
        priority=5,
        timeout=timedelta(milliseconds=30_000),
        delay=timedelta(),
        metadata="{}",
        ttl=None,
    )

    assert expected == admitted()
    assert "default" == admitted().queue


@pytest.mark.parametrize("field", [field for field in FIELDS if field not in MINIMAL])
def test_null_means_the_default(field: str) -> None:
    assert admitted() == admitted(**{field: None})


@pytest.mark.parametrize("field", MINIMAL)
def test_a_required_field_is_required(field: str) -> None:
    fields = {name: value for name, value in MINIMAL.items() if name != field}

    for missing in (fields, {**fields, field: None}):
        with pytest.raises(InvalidTask) as refusal:
            admit(missing, rules=RULES)
        assert (FieldProblem(field, "required"),) == refusal.value.problems


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue", "a"),
        ("queue", "0"),
        ("queue", "mail_high-1"),
        ("queue", "a" * 64),
        ("queue", "dead-letter"),
        ("idempotency_key", "k"),
        ("idempotency_key", "!~#/:" + "k" * 195),
        ("max_attempts", 1),
        ("max_attempts", 10),
        ("priority", 0),
        ("priority", 9),
    ],
)
def test_a_value_within_its_bounds_is_taken_as_it_is(field: str, value: object) -> None:
    assert value == getattr(admitted(**{field: value}), field)


NO_TEXT = [1, 1.5, True, b"default", ["default"], {}]


@pytest.mark.parametrize(
    "queue",
    [*NO_TEXT, "", "-a", "_a", "A", "a b", "a:b", "a" * 65, "default\n", "\ndefault", "ä", "a.b", "a/b", "a\x00"],
)
def test_a_queue_with_another_name_is_refused(queue: object) -> None:
    assert ["queue"] == blamed(queue=queue)


@pytest.mark.parametrize(
    "task_type", [*NO_TEXT, "", "-a", "_a", ".a", "a b", "a/b", "a" * 129, "echo_task\n", "ä", "a\x00", "a\u2028b"]
)
def test_a_task_type_with_another_form_is_invalid(task_type: object) -> None:
    assert ["task_type"] == blamed(task_type=task_type)


@pytest.mark.parametrize("task_type", ["a", "0", "A.b:c-d_e", "a" * 128])
def test_a_task_type_of_the_right_form_must_be_registered(task_type: str) -> None:
    rules = replace(RULES, task_types=frozenset({task_type}))

    with pytest.raises(UnknownTaskType, match=f"task_type: no handler named '{task_type}' is registered"):
        admitted(task_type=task_type)
    assert task_type == admit({**MINIMAL, "task_type": task_type}, rules=rules).task_type


@pytest.mark.parametrize("key", [*NO_TEXT, "", " ", "a b", "a\n", "\x7f", "ä", "k" * 201, "\x00"])
def test_an_idempotency_key_with_another_form_is_refused(key: object) -> None:
    assert ["idempotency_key"] == blamed(idempotency_key=key)


NO_INTEGER = [True, False, "1", 1.5, 1e300, NAN, INFINITY, [], {}, 10**30, -(10**30)]


@pytest.mark.parametrize("value", [*NO_INTEGER, 0, -1, 11])
def test_max_attempts_is_an_integer_within_its_bounds(value: object) -> None:
    assert (FieldProblem("max_attempts", "must be an integer within 1..10"),) == problems(max_attempts=value)


@pytest.mark.parametrize("value", [*NO_INTEGER, -1, 10])
def test_priority_is_an_integer_within_its_bounds(value: object) -> None:
    assert (FieldProblem("priority", "must be an integer within 0..9"),) == problems(priority=value)


@pytest.mark.parametrize("value", [*NO_INTEGER, 0, -1, 3_600_001])
def test_timeout_is_an_integer_within_its_bounds(value: object) -> None:
    assert (FieldProblem("timeout_ms", "must be an integer within 1..3600000"),) == problems(timeout_ms=value)


@pytest.mark.parametrize("value", [1, 30_000, 3_600_000])
def test_the_timeout_is_in_milliseconds(value: int) -> None:
    assert timedelta(milliseconds=value) == admitted(timeout_ms=value).timeout


def test_an_integer_may_be_written_with_a_fraction_of_zero() -> None:
    spec = admitted(priority=7.0, max_attempts=3.0, timeout_ms=1500.0)

    assert (7, 3, timedelta(milliseconds=1500)) == (spec.priority, spec.max_attempts, spec.timeout)


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (0, 0),
        (0.0, 0),
        (-0.0, 0),
        (1e-300, 1),
        (0.0001, 1),
        (0.001, 1),
        (0.0011, 2),
        (1.1, 1100),
        (2.3, 2300),
        (4.35, 4350),
        (60, 60_000),
        (2_592_000, 2_592_000_000),
        (2_592_000.0, 2_592_000_000),
    ],
)
def test_a_delay_is_kept_in_whole_milliseconds_and_never_shortened(value: float, milliseconds: int) -> None:
    assert timedelta(milliseconds=milliseconds) == admitted(delay_seconds=value).delay


@pytest.mark.parametrize(
    "value", [True, "1", NAN, INFINITY, -INFINITY, -1, -0.001, 2_592_000.1, 2_592_001, 10**400, [], {}]
)
def test_a_delay_is_a_finite_number_within_its_bounds(value: object) -> None:
    expected = FieldProblem("delay_seconds", "must be a finite number within 0..2592000")

    assert (expected,) == problems(delay_seconds=value)


def test_the_operators_cap_bounds_the_attempts_and_their_default() -> None:
    rules = AdmissionRules(task_types={"echo_task"}, max_attempts=3)

    assert 3 == admit(MINIMAL, rules=rules).max_attempts
    with pytest.raises(InvalidTask, match=r"max_attempts: must be an integer within 1\.\.3"):
        admit({**MINIMAL, "max_attempts": 4}, rules=rules)


def test_the_operators_timeout_is_the_default() -> None:
    rules = AdmissionRules(task_types={"echo_task"}, default_timeout_ms=7)

    assert timedelta(milliseconds=7) == admit(MINIMAL, rules=rules).timeout


@pytest.mark.parametrize("name", ["retries", "Payload", "task_id", "payload\n", ""])
def test_an_unknown_field_is_named_with_those_that_are_known(name: str) -> None:
    (problem,) = problems(**{name: 1})

    assert name.replace("\n", " ") == problem.field
    assert f"unknown field; known are {', '.join(FIELDS)}" == problem.problem


def test_the_name_of_an_unknown_field_is_cleaned_and_cut() -> None:
    assert ["a b" + "x" * 97] == blamed(**{"a\ud800b" + "x" * 1000: 1})


def test_no_more_than_twenty_unknown_fields_are_named() -> None:
    assert [f"f{number}" for number in range(20)] == blamed(**{f"f{number}": 1 for number in range(1000)})


def test_every_problem_is_found_at_once() -> None:
    bad = {
        "task_type": "",
        "payload": "[]",
        "queue": "A",
        "idempotency_key": "",
        "max_attempts": 0,
        "priority": 10,
        "timeout_ms": 0,
        "delay_seconds": NAN,
        "metadata": '{"discarded":1,"ttl_seconds":0}',
        "color": "red",
    }

    assert {*FIELDS, "color", "metadata.discarded", "metadata.ttl_seconds"} - {"metadata"} == {*blamed(**bad)}


def test_an_invalid_field_is_told_before_an_unknown_type() -> None:
    assert ["queue"] == blamed(task_type="nope", queue="A")


def test_no_value_is_repeated_in_a_problem() -> None:
    fields = dict.fromkeys(FIELDS, "s3cret value\n")

    assert not [problem for problem in problems(**fields) if "s3cret" in problem.problem + problem.field]


def test_the_limits_of_a_broker_are_those_of_the_design() -> None:
    assert BrokerLimits(queue_depth=10_000, scheduled=100_000, queues=1_000) == BrokerLimits()


def test_the_payloads_limit_is_the_contracts() -> None:
    assert 262_144 == RULES.max_payload_bytes


@pytest.mark.parametrize("fields", [{"queue": "A"}, {"task_type": "nope"}, {"color": "red"}])
def test_a_payload_that_is_too_large_is_told_before_all_else(fields: dict[str, object]) -> None:
    with pytest.raises(PayloadTooLarge):
        admitted(payload="[" * 262_145, **fields)
