from collections.abc import Iterator

import pytest

from dtq.domain import errors
from dtq.domain.errors import (
    BrokerOutOfMemory,
    BrokerRefused,
    BrokerUnavailable,
    CancelRequested,
    DeadLetterDiscarded,
    DtqError,
    FieldProblem,
    IdempotencyInProgress,
    InvalidRequest,
    InvalidTask,
    NotDeadLettered,
    NotInDeadLetters,
    OutcomeUnknown,
    PayloadTooLarge,
    QueueFull,
    RecordUnreadable,
    StepStopped,
    TaskNotFound,
    TaskTerminal,
    Unauthorized,
    UnknownTaskType,
    UnsuitableBroker,
    is_outage,
)
from dtq.domain.status import TaskStatus
from tests.domain.factories import TASK_ID

PROBLEMS = (FieldProblem("a", "x"), FieldProblem("b", "y"))


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidTask(PROBLEMS), "INVALID_TASK", "a: x; b: y"),
        (InvalidRequest(PROBLEMS), "INVALID_REQUEST", "a: x; b: y"),
        (UnknownTaskType("nope"), "UNKNOWN_TASK_TYPE", "task_type: no handler named 'nope' is registered"),
        (PayloadTooLarge(size=3, limit=2), "PAYLOAD_TOO_LARGE", "payload: 3 bytes, at most 2 are allowed"),
        (QueueFull("schedule_full", value=3, limit=2), "QUEUE_FULL", "schedule_full: 3 of 2"),
        (
            IdempotencyInProgress(TASK_ID, status=TaskStatus.RUNNING),
            "IDEMPOTENCY_IN_PROGRESS",
            f"the idempotency key belongs to task {TASK_ID}, which has not ended",
        ),
        (TaskNotFound(TASK_ID), "TASK_NOT_FOUND", f"no task {TASK_ID}"),
        (
            TaskTerminal(TASK_ID, status=TaskStatus.EXPIRED),
            "TASK_TERMINAL",
            f"task {TASK_ID} has ended: expired",
        ),
        (
            CancelRequested(TASK_ID),
            "CANCEL_REQUESTED",
            f"task {TASK_ID} is running; its cancellation is requested",
        ),
        (
            NotDeadLettered(TASK_ID, status=TaskStatus.QUEUED),
            "NOT_DEAD_LETTERED",
            f"task {TASK_ID} is queued, not a dead letter",
        ),
        (NotInDeadLetters(TASK_ID), "NOT_IN_DLQ", f"no dead letter of task {TASK_ID}"),
        (DeadLetterDiscarded(TASK_ID), "DLQ_DISCARDED", f"the dead letter of task {TASK_ID} was discarded"),
        (Unauthorized("no"), "UNAUTHORIZED", "no"),
        (BrokerUnavailable("no"), "BROKER_UNAVAILABLE", "no"),
        (BrokerOutOfMemory("no"), "BROKER_UNAVAILABLE", "no"),
        (OutcomeUnknown("no"), "BROKER_UNAVAILABLE", "no"),
        (RecordUnreadable("no"), "RECORD_UNREADABLE", "no"),
        (UnsuitableBroker("no"), "UNSUITABLE_BROKER", "no"),
        (DtqError("no"), "INTERNAL", "no"),
    ],
)
def test_an_error_has_its_code_and_says_what_is_wrong(error: DtqError, code: str, message: str) -> None:
    assert (code, message) == (error.code, str(error))


def test_every_error_but_the_general_one_has_a_code_of_its_own_or_that_of_its_parent() -> None:
    # of the domain's own: what else is imported by now depends on which other tests run
    kinds = [kind for kind in descendants(DtqError) if kind.__base__ is DtqError and kind.__module__ == errors.__name__]

    assert len(kinds) > 10
    assert len(kinds) == len({kind.code for kind in kinds} - {"INTERNAL"})


def descendants(kind: type[DtqError]) -> Iterator[type[DtqError]]:
    for child in kind.__subclasses__():
        yield child
        yield from descendants(child)


@pytest.mark.parametrize(
    ("error", "field"), [(UnknownTaskType("nope"), "task_type"), (PayloadTooLarge(size=3, limit=2), "payload")]
)
def test_a_fault_of_one_field_is_told_like_every_other(error: UnknownTaskType | PayloadTooLarge, field: str) -> None:
    (problem,) = error.problems

    assert str(error) == f"{field}: {problem.problem}"
    assert field == problem.field


def test_what_a_caller_may_want_to_know_is_an_attribute() -> None:
    assert ("queue_full", TaskStatus.RUNNING, TASK_ID) == (
        QueueFull("queue_full", value=1, limit=1).reason,
        TaskTerminal(TASK_ID, status=TaskStatus.RUNNING).status,
        IdempotencyInProgress(TASK_ID, status=None).task_id,
    )


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (BrokerUnavailable("away"), True),
        (OutcomeUnknown("no answer"), True),
        (BrokerOutOfMemory("full"), True),
        (BrokerRefused("NOPERM"), False),
        (RecordUnreadable("WRONGTYPE"), False),
        (StepStopped("half-way"), False),
        (TaskNotFound(TASK_ID), False),
        (ValueError("odd"), False),
    ],
)
def test_an_outage_says_more_than_that_one_thing_is_not_done(error: Exception, *, is_one: bool) -> None:
    assert is_one == is_outage(error)
