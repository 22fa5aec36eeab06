"""An adapter held against the model: that both know the same, and that the rules of the state machine hold."""

import asyncio
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Final

from dtq.domain.events import EventType
from dtq.domain.idempotency import state_of
from dtq.domain.possible import impossibility
from dtq.domain.status import Place, TaskStatus, is_legal
from dtq.domain.task import TaskId, place_of
from tests.contract.harness import Harness
from tests.contract.model import Model
from tests.contract.steps import key_record
from tests.factories import QUEUE

E, S = EventType, TaskStatus
STATUS_AFTER: Final[Mapping[EventType, TaskStatus]] = {
    E.TASK_QUEUED: S.QUEUED,
    E.TASK_RETRIED: S.QUEUED,
    E.TASK_STARTED: S.RUNNING,
    E.TASK_SUCCEEDED: S.SUCCEEDED,
    E.TASK_RETRY_SCHEDULED: S.RETRYING,
    E.TASK_FAILED: S.FAILED,
    E.TASK_DEAD_LETTERED: S.DEAD_LETTERED,
    E.TASK_CANCELLED: S.CANCELLED,
    E.TASK_EXPIRED: S.EXPIRED,
}


async def assert_same(harness: Harness, model: Model, *, keys: Collection[str]) -> None:
    """The adapter holds exactly what the model holds."""
    backend = harness.backend
    assert model.census() == await harness.census()
    stored = await asyncio.gather(*(backend.broker.load(task_id) for task_id in model.tasks))
    assert list(model.tasks.values()) == stored
    results = await asyncio.gather(*(backend.broker.result(task_id) for task_id in model.tasks))
    assert [model.results.get(task_id) for task_id in model.tasks] == results
    held = sum(entry.owner is not None for entry in model.entries.values())
    stats = await backend.queues.stats(QUEUE)
    assert (len(model.entries), held, model.is_paused) == (stats.depth, stats.pending, stats.paused)
    assert len(model.letters) == await backend.dead_letters.count()
    for key in keys:
        assert model.keys.get(key) == await key_record(harness, key)


def assert_placed(model: Model, *, except_for: Collection[TaskId]) -> None:
    """Every task is where its status says and nowhere else."""
    census = model.census()
    for task_id in model.tasks.keys() - except_for:
        places = {place for place, task_ids in census.items() if task_id in task_ids}
        match place_of(model.tasks[task_id]):
            case Place.READY:
                assert places in ({Place.READY}, {Place.HELD})
            case Place.DEAD:
                assert places <= {Place.DEAD}
            case Place.NOWHERE:
                assert not places
            case place:
                assert {place} == places


def assert_lawful(model: Model) -> None:
    """Attempts are bounded, leases and entries belong to their statuses, and a cancel request ends in CANCELLED."""
    for task in model.tasks.values():
        assert impossibility(task) is None
        assert (task.entry_id is not None) == (place_of(task) in {Place.READY, Place.HELD})
        assert not (task.cancel_requested and task.is_terminal) or task.status is S.CANCELLED
    for record in model.keys.values():
        holder = model.tasks.get(record.task_id)
        assert holder is None or state_of(holder.status) is record.state


def assert_is_a_path(events: Collection[EventType]) -> None:
    """A task's events, in order, are a path through the transition table."""
    path = [STATUS_AFTER[kind] for kind in events if kind in STATUS_AFTER]
    for before, after in pairwise(path):
        assert is_legal(before, after) or before is after is S.RUNNING, path
