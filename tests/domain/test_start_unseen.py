"""Starts of tasks that their worker has not seen, and what is made of one that it hears of late."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.delivery import start, start_unseen, unseen_start
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, Task
from tests.domain.factories import BEGIN, NOW, POLICY, TOKEN, a_claim, a_task

A_MOMENT = timedelta(microseconds=1)


def unseen(task: Task) -> Change | None:
    return start_unseen(task, claim=a_claim(), now=NOW, token=TOKEN)


def seen(task: Task) -> object:
    return start(task, claim=a_claim(), now=NOW, token=TOKEN, policy=POLICY)


@pytest.mark.parametrize("changes", [{}, {"available_at": NOW, "created_at": NOW}, {"priority": 5, "payload": None}])
def test_what_merely_waits_for_its_first_start_is_started_as_if_it_were_seen(changes: dict[str, Any]) -> None:
    task = replace(a_task(), **changes)

    assert seen(task) == unseen(task) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"ttl_at": NOW + timedelta(days=1)},
        {"ttl_at": NOW},
        {"cancel_requested": True},
        {"idempotency_key": "key"},
        {"attempt": 1},
        {"entry_id": EntryId("1-1")},
        {"entry_id": None},
        {"priority": 6},
        {"created_at": NOW + A_MOMENT},
        {"available_at": NOW + A_MOMENT},
    ],
)
def test_what_more_is_to_be_decided_of_is_not_started(changes: dict[str, Any]) -> None:
    assert unseen(replace(a_task(), **changes)) is None


@given(
    status=st.sampled_from(TaskStatus),
    attempt=st.sampled_from([None, 0, 1, 3]),
    ttl=st.sampled_from([None, timedelta(), timedelta(days=1)]),
    asked=st.booleans(),
    entry_id=st.sampled_from([None, EntryId("1-1"), a_task().entry_id]),
    later=st.sampled_from([-A_MOMENT, timedelta(), A_MOMENT]),
)
def test_no_start_is_another_than_that_of_a_task_that_was_seen(
    status: TaskStatus,
    attempt: int | None,
    ttl: timedelta | None,
    entry_id: EntryId | None,
    later: timedelta,
    *,
    asked: bool,
) -> None:
    task = replace(
        a_task(status),
        ttl_at=None if ttl is None else NOW + ttl,
        cancel_requested=asked,
        entry_id=entry_id,
        available_at=NOW + later,
    )
    task = task if attempt is None else replace(task, attempt=attempt)

    change = unseen(task)

    assert change is None or change == seen(task)


def test_a_start_that_is_heard_of_late_is_told_as_it_was_made() -> None:
    change = unseen(a_task())
    assert change is not None
    assert change.before is not None

    late = unseen_start(change.after, token=TOKEN)

    assert late is not None
    assert replace(change, before=late.before) == late
    assert replace(change.before, version=late.before.version if late.before else TOKEN) == late.before


def test_one_that_was_asked_to_cancel_meanwhile_is_told_as_it_was_made() -> None:
    change = unseen(a_task())
    assert change is not None

    late = unseen_start(replace(change.after, cancel_requested=True, version=a_task().version), token=TOKEN)

    assert late is not None
    assert change.after == late.after


@pytest.mark.parametrize("status", [status for status in TaskStatus if status is not TaskStatus.RUNNING])
def test_of_a_task_that_does_not_run_no_start_is_told(status: TaskStatus) -> None:
    assert unseen_start(a_task(status), token=TOKEN) is None


def test_a_start_before_this_one_is_as_long_ago_as_it_was() -> None:
    late = unseen_start(a_task(TaskStatus.RUNNING), token=TOKEN)

    assert late is not None
    assert (BEGIN, BEGIN) == (late.at, late.after.started_at)
