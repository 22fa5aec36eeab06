import pytest

from dtq.application.fan_out_filter import EVERYTHING, MAX_VALUES, EventFilter, event_filter
from dtq.domain.errors import InvalidRequest
from dtq.domain.events import EventType
from tests.factories import a_task_id, an_event

E = EventType
MINE = a_task_id()


@pytest.mark.parametrize(
    ("named", "admitted"),
    [
        ([], True),
        ([("queue", "mail")], True),
        ([("queue", "other")], False),
        ([("queue", "other"), ("queue", "mail")], True),
        ([("type", "TASK_FAILED")], True),
        ([("type", "TASK_QUEUED")], False),
        ([("task_id", MINE)], True),
        ([("task_id", "0" * 32)], False),
        ([("queue", "mail"), ("type", "TASK_FAILED"), ("task_id", MINE)], True),
        ([("queue", "mail"), ("type", "TASK_QUEUED")], False),
    ],
)
def test_an_event_passes_that_has_a_named_value_in_each_named_member(
    named: list[tuple[str, str]], *, admitted: bool
) -> None:
    event = an_event(type=E.TASK_FAILED, queue="mail", task_id=MINE)

    assert admitted is event_filter(named).admits(event)


def test_an_event_without_a_member_does_not_pass_where_values_of_it_are_named() -> None:
    event = an_event(type=E.WORKER_STALE, queue=None, task_id=None)

    assert not event_filter([("queue", "mail")]).admits(event)
    assert not event_filter([("task_id", MINE)]).admits(event)
    assert event_filter([("type", "WORKER_STALE")]).admits(event)


def test_every_type_can_be_named() -> None:
    assert EventFilter(types=frozenset(E)) == event_filter([("type", kind.value) for kind in E])


def test_the_order_of_the_values_makes_no_difference() -> None:
    first, second = ("queue", "a"), ("queue", "b")

    assert event_filter([first, second]) == event_filter([second, first, first])
    assert EVERYTHING == event_filter([])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("queue", "", "must be the name of a queue"),
        ("queue", "Mail", "must be the name of a queue"),
        ("queue", "mail\n", "must be the name of a queue"),
        ("type", "task_failed", "must be one of TASK_QUEUED"),
        ("task_id", "1", "must be a task id"),
        ("task_id", MINE.upper() + "A", "must be a task id"),
        ("quueue", "mail", "unknown; known are queue, type, task_id"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        event_filter([(name, value)])

    [problem] = refused.value.problems
    assert name == problem.field
    assert words in problem.problem


def test_every_fault_is_told_at_once() -> None:
    with pytest.raises(InvalidRequest) as refused:
        event_filter([("type", "x"), ("queue", "ok"), ("task_id", "y"), ("other", "z")])

    assert ["type", "task_id", "other"] == [problem.field for problem in refused.value.problems]


def test_too_many_values_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=f"at most {MAX_VALUES} are allowed"):
        event_filter([("queue", f"q{number}") for number in range(MAX_VALUES + 1)])
    with pytest.raises(InvalidRequest, match=f"at most {MAX_VALUES} are allowed"):
        event_filter([("queue", "same")] * (MAX_VALUES + 1))


def test_a_refusal_is_short_whatever_was_sent() -> None:
    with pytest.raises(InvalidRequest) as refused:
        event_filter([("x" * 10_000, "y") for _ in range(10_000)] + [("queue", "\x00" * 10_000)])

    assert len(str(refused.value)) < 5000
