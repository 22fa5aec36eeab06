"""What must hold of a case that has come to rest, whatever was done to it: one checker for the whole matrix."""

import json
from typing import Any

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.events import EventType
from dtq.domain.idempotency import state_of
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from tests.crash.cells import Outcome
from tests.crash.ground import WITHIN_S, Case, Ground
from tests.judged.census import see_every_task_ended_once, see_nothing_left
from tests.judged.waiting import wait_until

LAST = {
    TaskStatus.SUCCEEDED: EventType.TASK_SUCCEEDED,
    TaskStatus.CANCELLED: EventType.TASK_CANCELLED,
    TaskStatus.DEAD_LETTERED: EventType.TASK_DEAD_LETTERED,
}


def see_outcome(ground: Ground, outcome: Outcome) -> None:
    """See that each case ended as told, and that nothing else is left of it."""
    system = ground.system
    accepted = {ground.ended(case): "" for case in ground.cases}
    wait_until(lambda: _is_quiet(ground), within=WITHIN_S, what="every entry is removed")
    events = ground.events()
    for case in ground.cases:
        task = system.task(str(case.task_id))
        _see_events([event for event in events if event["task_id"] == task.task_id], outcome)
        assert (outcome.status, outcome.attempt) == (task.status, task.attempt)
        assert list(outcome.starts) == system.journal.starts(task.task_id)
        _see_key(ground, case, task)
        assert not outcome.answers or case.answers[-1] in outcome.answers, case.answers
    see_every_task_ended_once(system, accepted)
    see_nothing_left(system)
    assert {"0"} >= set(system.redis.hgetall(system.keys.queues).values()), "nothing counts as scheduled"
    assert system.redis.ttl(system.keys.task(TaskId(next(iter(accepted))))) > 0


def _see_events(events: list[dict[str, Any]], outcome: Outcome) -> None:
    """See that each step was told of once, and the end last."""
    ids, types = [event["event_id"] for event in events], [event["type"] for event in events]
    assert sorted(set(ids)) == sorted(ids), types
    assert max(outcome.attempt, len(outcome.starts)) == types.count(EventType.TASK_STARTED), types
    assert LAST[outcome.status] is EventType(types[-1]), types


def _is_quiet(ground: Ground) -> bool:
    redis, keys = ground.system.redis, ground.system.keys
    return all(redis.xlen(stream) == 0 for stream in keys.streams(DEFAULT_QUEUE))


def _see_key(ground: Ground, case: Case, task: Task) -> None:
    """See that the idempotency record stands for this task, in its state, for a while, where it has a key."""
    if case.is_keyless:
        assert task.idempotency_key is None
        return
    redis, key = ground.system.redis, ground.system.keys.idempotency(task.queue, case.key)
    record: Any = json.loads(redis.get(key))
    assert (task.task_id, state_of(TaskStatus(task.status))) == (record["task_id"], record["state"])
    assert redis.ttl(key) > 0
