from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Drop, DropReason
from dtq.domain.events import EventType
from dtq.domain.lifecycle import KEPT_PREVIOUS_ATTEMPTS, discard, rehome, requeue
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import EntryId, Task, place_of
from tests.domain.factories import (
    ALIVE,
    BEGIN,
    ENDED,
    NOW,
    OPERATOR,
    STATUSES,
    TOKEN,
    a_record,
    a_task,
)

SECOND = timedelta(seconds=1)


def requeued(task: Task) -> Change:
    decision = requeue(task, now=NOW, token=TOKEN, by=OPERATOR)
    assert isinstance(decision, Change)
    return decision


def test_a_requeue_starts_a_new_life() -> None:
    old = {"retry_delay": SECOND, "cancel_requested": True, "result_truncated": True}
    task = replace(a_task(TaskStatus.DEAD_LETTERED), idempotency_key="key", **old)

    change = requeued(task)

    expected = replace(
        a_task(TaskStatus.QUEUED),
        idempotency_key="key",
        available_at=NOW,
        requeued_at=NOW,
        previous_attempts=task.history,
        entry_id=None,
        version=TOKEN,
    )
    assert expected == change.after
    assert (Requirement.IN_DEAD_LETTERS,) == change.requires


def test_a_requeue_is_announced_and_audited() -> None:
    change = requeued(a_task(TaskStatus.DEAD_LETTERED))

    assert change.event is not None
    assert (EventType.TASK_QUEUED, {"requeued": True}) == (change.event.type, change.event.metadata)
    assert change.audit is not None
    assert ("dlq.requeue", "cli:ann@host", NOW) == (change.audit.action, change.audit.actor, change.audit.ts)


def test_a_requeue_gives_the_whole_time_to_live_again() -> None:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), ttl_at=BEGIN + 7 * SECOND)

    assert NOW + 7 * SECOND == requeued(task).after.ttl_at


def test_a_second_requeue_gives_the_same_time_to_live() -> None:
    requeued_at = BEGIN + 60 * SECOND
    task = replace(a_task(TaskStatus.DEAD_LETTERED), requeued_at=requeued_at, ttl_at=requeued_at + 7 * SECOND)

    assert NOW + 7 * SECOND == requeued(task).after.ttl_at


def test_a_requeue_appends_the_history_to_that_of_earlier_lives() -> None:
    earlier = (a_record(1), a_record(2))
    task = replace(a_task(TaskStatus.DEAD_LETTERED), previous_attempts=earlier, history=(a_record(3),))

    after = requeued(task).after

    assert ((), (*earlier, a_record(3)), 0) == (after.history, after.previous_attempts, after.previous_attempts_dropped)


@pytest.mark.parametrize(("earlier", "kept", "dropped"), [(18, 20, 0), (19, 20, 1), (20, 20, 2)])
def test_a_requeue_keeps_the_newest_twenty_attempts_and_counts_the_others(
    earlier: int, kept: int, dropped: int
) -> None:
    records = tuple(a_record(number) for number in range(1, earlier + 3))
    task = replace(
        a_task(TaskStatus.DEAD_LETTERED),
        previous_attempts=records[:earlier],
        previous_attempts_dropped=4,
        history=records[earlier:],
    )

    after = requeued(task).after

    assert records[-kept:] == after.previous_attempts
    assert 4 + dropped == after.previous_attempts_dropped


def test_twenty_are_kept() -> None:
    assert 20 == KEPT_PREVIOUS_ATTEMPTS


def test_a_discard_takes_the_letter_away_and_leaves_the_record_dead() -> None:
    task = a_task(TaskStatus.DEAD_LETTERED)

    change = discard(task, now=NOW, token=TOKEN, by=OPERATOR)

    assert isinstance(change, Change)
    assert replace(task, discarded=True, dlq_entry_id=None, version=TOKEN) == change.after
    assert Place.NOWHERE is place_of(change.after)
    assert (None, (Requirement.IN_DEAD_LETTERS,)) == (change.event, change.requires)
    assert change.audit is not None
    assert "dlq.discard" == change.audit.action


@pytest.mark.parametrize("act", [requeue, discard])
@pytest.mark.parametrize("status", [status for status in STATUSES if status is not TaskStatus.DEAD_LETTERED])
def test_what_is_no_dead_letter_is_neither_requeued_nor_discarded(
    act: Callable[..., Change | Drop], status: TaskStatus
) -> None:
    assert Drop(DropReason.NOT_DEAD) == act(a_task(status), now=NOW, token=TOKEN, by=OPERATOR)


@pytest.mark.parametrize("act", [requeue, discard])
def test_a_discarded_letter_is_neither_requeued_nor_discarded(act: Callable[..., Change | Drop]) -> None:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), discarded=True, dlq_entry_id=None)

    assert Drop(DropReason.DISCARDED) == act(task, now=NOW, token=TOKEN, by=OPERATOR)


@pytest.mark.parametrize("status", ALIVE)
def test_an_orphan_gets_a_new_place_and_stays_what_it_was(status: TaskStatus) -> None:
    task = a_task(status)

    change = rehome(task, now=NOW, token=TOKEN)

    assert isinstance(change, Change)
    assert replace(task, entry_id=None, version=TOKEN) == change.after
    assert place_of(task) is place_of(change.after)
    assert (None, (Requirement.HOMELESS,)) == (change.event, change.requires)


@pytest.mark.parametrize("status", ENDED)
def test_an_ended_task_needs_no_place(status: TaskStatus) -> None:
    assert Drop(DropReason.ENDED) == rehome(a_task(status), now=NOW, token=TOKEN)


def test_a_requeue_is_of_the_letter_that_was_read() -> None:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), dlq_entry_id=EntryId("9-9"))

    change = requeued(task)

    assert change.before is not None
    assert (EntryId("9-9"), None) == (change.before.dlq_entry_id, change.after.dlq_entry_id)
