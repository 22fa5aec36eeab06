"""Key names: the contract's, from one prefix, each with its bound."""

import pytest

from dtq.adapters.redis.keys import BANDS, Keyspace
from dtq.domain.task import QueueName, TaskId, WorkerId

KEYS = Keyspace("dtq")
QUEUE = QueueName("mail")
TASK = TaskId("0" * 32)
WORKER = WorkerId("worker-1")


def test_the_names_are_those_of_the_contract() -> None:
    assert "dtq:stream:mail:p7" == KEYS.stream(QUEUE, 7)
    assert "dtq:stream:dead-letter" == KEYS.dead_letters
    assert "dtq:retry:schedule" == KEYS.schedule
    assert "dtq:retry:claimed" == KEYS.claimed
    assert f"dtq:task:{TASK}" == KEYS.task(TASK)
    assert "dtq:idempotency:mail:a:b" == KEYS.idempotency(QUEUE, "a:b")
    assert "dtq:worker:worker-1" == KEYS.worker(WORKER)
    assert "dtq:workers" == KEYS.workers
    assert "dtq:queue:mail:paused" == KEYS.paused(QUEUE)
    assert "dtq:cancelled" == KEYS.cancelled
    assert "dtq:tasks:recent" == KEYS.recent
    assert "dtq:stream:audit" == KEYS.audit
    assert "dtq:lock:scheduler" == KEYS.lock
    assert "dtq:events" == KEYS.events


def test_the_streams_of_a_queue_come_highest_priority_first() -> None:
    assert tuple(KEYS.stream(QUEUE, priority) for priority in BANDS) == KEYS.streams(QUEUE)
    assert (9, 0) == (BANDS[0], BANDS[-1])


@pytest.mark.parametrize("name", ["audit", "dead-letter", "p5"])
def test_a_queue_may_be_named_like_another_stream(name: str) -> None:
    assert not {KEYS.audit, KEYS.dead_letters}.intersection(KEYS.streams(QueueName(name)))


BOUNDED = [
    KEYS.stream(QUEUE, 0),
    KEYS.dead_letters,
    KEYS.audit,
    KEYS.schedule,
    KEYS.claimed,
    KEYS.recent,
    KEYS.queues,
    KEYS.paused(QUEUE),
    KEYS.workers,
]


@pytest.mark.parametrize("key", BOUNDED)
def test_a_key_without_a_lifetime_has_a_bound(key: str) -> None:
    assert KEYS.bound_of(key)


@pytest.mark.parametrize("key", [KEYS.task(TASK), KEYS.lock, KEYS.worker(WORKER), "dtq:new", "other:queues"])
def test_every_other_key_needs_a_lifetime(key: str) -> None:
    assert KEYS.bound_of(key) is None


@pytest.mark.parametrize(("prefix", "expected"), [("dtq", False), ("{dtq}", True), ("a{b}c", True), ("{}", False)])
def test_a_hash_tag_keeps_all_keys_in_one_slot(prefix: str, *, expected: bool) -> None:
    assert expected is Keyspace(prefix).is_one_slot
