"""A change may be sent twice, its answer lost, its script cut half-way: it happens once, and nothing is lost."""

from itertools import count

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.errors import OutcomeUnknown
from dtq.domain.task import Task
from dtq.ports.answers import (
    Admission,
    Already,
    Applied,
    Broken,
    CommitAnswer,
    Conflict,
    CreateAnswer,
    KeyTaken,
    Refused,
)
from tests.contract.harness import Harness
from tests.contract.kinds import KINDS, prepared
from tests.contract.recording import recording
from tests.contract.settling import assert_settled, settle
from tests.contract.steps import bare, create, key_record, stored, write
from tests.factories import a_token

EACH_KIND = pytest.mark.parametrize("kind", KINDS)


async def _snapshot(harness: Harness, change: Change) -> object:
    """Everything that a change can touch."""
    task, backend = change.after, harness.backend
    return (
        await backend.broker.load(task.task_id),
        await harness.census(),
        await backend.queues.stats(task.queue),
        await key_record(harness, task.idempotency_key or ""),
        await backend.broker.result(task.task_id),
        await backend.audit.recent(limit=100),
        await backend.dead_letters.count(),
        [one.task_id for one in (await backend.broker.recent(queue=None, status=None, limit=100)).tasks],
    )


async def _again(harness: Harness, change: Change) -> CommitAnswer | CreateAnswer:
    """Send a change once more, as its sender does: a record that names no task but its own is taken over."""
    answer = await write(harness, change)
    if isinstance(answer, KeyTaken) and answer.record and answer.record.task_id == change.after.task_id:
        return await create(harness, Admission(change=change, replaces=answer.text))
    return answer


def _as_changed(task: Task, change: Change) -> Task:
    """The task as the change has it; which entry it got is the broker's business."""
    return replace(bare(change.after), entry_id=task.entry_id, dlq_entry_id=task.dlq_entry_id)


@EACH_KIND
async def test_a_change_is_stored_as_it_was_decided(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind)

    answer = await write(harness, change)

    assert isinstance(answer, Applied)
    task = await stored(harness, change.after.task_id)
    assert _as_changed(task, change) == bare(task)
    assert bare(task) == bare(answer.task)
    assert change.after.payload == answer.task.payload


@EACH_KIND
async def test_a_repeat_is_known_by_its_token_and_changes_nothing(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind)
    await write(harness, change)
    before = await _snapshot(harness, change)

    async with recording(harness) as record:
        answer = await write(harness, change)

        assert Already(bare(await stored(harness, change.after.task_id))) == answer
        assert before == await _snapshot(harness, change)
        assert [] == await record.heard()


@EACH_KIND
async def test_a_change_whose_reply_is_lost_has_happened(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind)
    await harness.lose_reply()

    with pytest.raises(OutcomeUnknown):
        await write(harness, change)

    task = await stored(harness, change.after.task_id)
    assert _as_changed(task, change) == bare(task)
    assert Already(bare(task)) == await write(harness, change)


@EACH_KIND
async def test_a_change_that_stops_anywhere_is_completed_by_its_repeat(harness: Harness, kind: str) -> None:
    for writes in count():
        key = f"key-{writes}"
        change = await prepared(harness, kind, key=key)
        await harness.stop_after(writes)
        answer = await write(harness, change)
        if isinstance(answer, Applied):
            assert writes > 0
            return
        assert isinstance(answer, Broken)

        repeat = await _again(harness, change)

        if isinstance(repeat, Refused):
            # the half that was done gave the stray its home, which is all that was wanted
            assert Requirement.HOMELESS is repeat.requirement
        else:
            assert isinstance(repeat, Applied | Already)
            assert change.after.version == (await stored(harness, change.after.task_id)).version
        await settle(harness)
        await assert_settled(harness, [change.after.task_id], key=key)


@EACH_KIND
async def test_a_change_that_stops_anywhere_and_is_never_repeated_loses_nothing(harness: Harness, kind: str) -> None:
    for writes in count():
        key = f"key-{writes}"
        change = await prepared(harness, kind, key=key)
        was_stored = await harness.backend.broker.load(change.after.task_id) is not None
        await harness.stop_after(writes)
        answer = await write(harness, change)
        if isinstance(answer, Applied):
            return
        assert isinstance(answer, Broken)

        await settle(harness)

        assert not was_stored or await harness.backend.broker.load(change.after.task_id) is not None
        await assert_settled(harness, [change.after.task_id], key=key)


@EACH_KIND
async def test_a_change_decided_on_a_task_that_moved_writes_nothing(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind)
    await write(harness, change)
    late = replace(change, after=replace(change.after, version=a_token()), event=None)
    before = await _snapshot(harness, change)

    answer = await write(harness, late)

    assert Conflict(bare(await stored(harness, change.after.task_id))) == answer
    assert before == await _snapshot(harness, change)
