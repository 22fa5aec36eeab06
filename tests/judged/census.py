"""What must hold of a deployment that has come to rest, whatever was done to it before."""

from collections.abc import Mapping

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.status import TERMINAL, TaskStatus
from tests.judged.system import System
from tests.judged.waiting import wait_until

# by what follows the prefix: the keys that may live for ever, and how long each may grow
BOUNDED = {
    "stream:dead-letter": 11_000,
    "stream:audit": 11_000,
    "tasks:recent": 10_100,
    "queues": 1_000,
    "workers": 100,
}
EMPTY_AT_REST = ("retry:schedule", "retry:claimed")


def statuses(system: System) -> dict[str, str]:
    """The status of every task that is stored."""
    prefix = system.keys.task_prefix
    keys = sorted(system.redis.scan_iter(match=f"{prefix}*", count=1000))
    pipeline = system.redis.pipeline(transaction=False)
    for key in keys:
        pipeline.hget(key, "status")
    return {key.removeprefix(prefix): status for key, status in zip(keys, pipeline.execute(), strict=True)}


def see_every_task_ended_once(system: System, accepted: Mapping[str, str]) -> dict[str, str]:
    """See that what was accepted, and nothing else, is there and has ended; return the statuses."""
    found = statuses(system)
    assert sorted(accepted) == sorted(found), "lost or made up"
    assert {} == {task_id: status for task_id, status in found.items() if status not in TERMINAL}
    dead = [fields["task_id"] for _, fields in system.redis.xrange(system.keys.dead_letters)]
    buried = [task_id for task_id, status in found.items() if status == TaskStatus.DEAD_LETTERED]
    assert sorted(buried) == sorted(dead), "each dead-lettered task has one dead letter"
    return found


def see_attempts_bounded(system: System, *, max_attempts: int) -> None:
    """See that no task was started too often, and each time under a new, higher number."""
    starts: dict[str, list[int]] = {}
    for mark in system.journal.marks(lambda mark: mark.what == "start"):
        starts.setdefault(mark.task_id, []).append(mark.attempt)
    for task_id, attempts in starts.items():
        assert sorted(set(attempts)) == attempts, f"{task_id}: {attempts}"
        assert attempts[-1] <= max_attempts


def duplicate_runs(system: System) -> int:
    """How many starts were not a first one and not a retry that the handler asked for."""
    starts = system.journal.marks(lambda mark: mark.what == "start")
    retries = system.journal.marks(lambda mark: mark.what == "raise")
    return len(starts) - len({mark.task_id for mark in starts}) - len(retries)


def see_nothing_left(system: System) -> None:
    """See that streams and schedule are empty, nothing is pending, and every key will go or has a bound."""
    for stream in system.keys.streams(DEFAULT_QUEUE):
        assert 0 == system.redis.xlen(stream), stream
        assert 0 == system.redis.xpending(stream, "workers")["pending"], stream
    for name in EMPTY_AT_REST:
        assert 0 == system.redis.zcard(f"{system.prefix}:{name}"), name
    unbounded = []
    for key in system.redis.scan_iter(match=f"{system.prefix}:*", count=1000):
        name = key.removeprefix(f"{system.prefix}:")
        if system.redis.ttl(key) == -1 and not is_bounded(system, key, name):
            unbounded.append(name)
    assert [] == unbounded


def is_bounded(system: System, key: str, name: str) -> bool:
    """Whether a key without a lifetime is a known one, and within its bound."""
    if key in system.keys.streams(DEFAULT_QUEUE):
        return True
    if name not in BOUNDED:
        return False
    size = {"stream": "XLEN", "zset": "ZCARD", "hash": "HLEN", "set": "SCARD"}[system.redis.type(key)]
    return int(system.redis.execute_command(size, key)) <= BOUNDED[name]


def come_to_rest(system: System, accepted: Mapping[str, str], *, within: float) -> None:
    """Wait until all accepted tasks have ended and nothing is scheduled any more."""
    wait_until(
        lambda: system.count_ended(accepted) == len(accepted) and not system.redis.zcard(system.keys.schedule),
        within=within,
        what=f"all {len(accepted)} tasks end",
    )
