"""What a 202 survives in each way to run Redis: what is lost is lost whole, and what is left is a prefix of history."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import pytest
from redis import Redis

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.crash.ground import SETTINGS
from tests.crash.nursery import Nursery
from tests.judged.census import see_every_task_ended_once, see_nothing_left
from tests.judged.system import System, a_task
from tests.judged.waiting import wait_until
from tests.servers import RedisServer, start_own
from tests.servers.engine import AppendFsync
from tests.servers.proxy import Proxy

WITHIN_S = 20.0
TASKS = 12
CUTS = 24
"""At how many bytes of the last steps the log is cut, each a power failure of its own."""

Systems = Callable[[RedisServer], System]


@pytest.fixture
def systems(nursery: Nursery, tmp_path: Path) -> Iterator[Systems]:
    """Deployments on servers that a test chooses."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(
            System(server, folder=tmp_path, settings=SETTINGS, spawn=nursery.spawn)
        )


def client_of(server: RedisServer) -> Any:
    """A plain client; redis-py's annotations allow for so much that no answer has a useful type."""
    return Redis.from_url(server.url)


def submitted(system: System, names: Sequence[str], **fields: Any) -> dict[str, TaskId]:
    """Submit one task a name, which is its idempotency key, each in a step of its own."""
    return {name: system.create(a_task("brief", idempotency_key=name, **fields))[0] for name in names}


def see_whole(system: System, tasks: dict[str, TaskId]) -> list[str]:
    """See of each task that all of it is there, or nothing; return the names of those that are there."""
    redis, keys = system.redis, system.keys
    stream = keys.stream(DEFAULT_QUEUE, 5)
    entries = [fields["task_id"] for _, fields in redis.xrange(stream)] if redis.exists(stream) else []
    there = []
    for name, task_id in tasks.items():
        parts = [redis.exists(keys.task(task_id)), redis.exists(keys.idempotency(DEFAULT_QUEUE, name))]
        parts += [entries.count(task_id), redis.zscore(keys.recent, task_id) is not None]
        assert parts in ([1, 1, 1, True], [0, 0, 0, False]), f"{name} is there in part: {parts}"
        if parts[0]:
            there.append(name)
    assert len(entries) == len(there), "entries of nobody"
    return there


def see_it_drain(system: System, tasks: dict[str, TaskId]) -> None:
    """See that what is there is run to its end, once."""
    worker = system.worker()
    accepted = {str(task_id): "" for task_id in tasks.values()}
    wait_until(lambda: system.count_ended(accepted) == len(accepted), within=WITHIN_S, what="all end")
    assert {TaskStatus.SUCCEEDED} >= set(see_every_task_ended_once(system, accepted).values())
    see_nothing_left(system)
    worker.kill()


@pytest.mark.parametrize("appendfsync", get_args(AppendFsync))
def test_a_server_that_is_killed_loses_nothing_it_has_answered(systems: Systems, appendfsync: AppendFsync) -> None:
    with start_own(appendfsync=appendfsync) as server:
        system = systems(server)
        tasks = submitted(system, [f"key-{number}" for number in range(TASKS)])
        server.kill()
        server.restart()

        assert list(tasks) == see_whole(system, tasks)
        see_it_drain(system, tasks)


def test_what_a_power_failure_takes_from_the_log_is_the_end_of_history_whole_steps_of_it(
    systems: Systems, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with start_own(appendfsync="everysec", data_dir=data) as server:
        system = systems(server)
        tasks = submitted(system, ["first"])
        log = max(data.glob("appendonlydir/*.incr.aof"))
        synced = log.stat().st_size
        tasks |= submitted(system, ["second", "third"])
        server.kill()
        whole = log.read_bytes()
        assert len(whole) > synced
        seen = set()

        for cut in range(len(whole), synced - 1, -max(1, (len(whole) - synced) // CUTS)):
            log.write_bytes(whole[:cut])
            server.restart()
            there = see_whole(system, tasks)
            assert list(tasks)[: len(there)] == there, "what is left is no prefix of what was submitted"
            seen.add(len(there))
            server.kill()

        assert {1, 2, 3} == seen
        log.write_bytes(whole[: synced + 1])
        server.restart()
        lost = {name: task_id for name, task_id in tasks.items() if name != "first"}
        again = submitted(system, list(lost))
        assert not set(again.values()) & set(lost.values())
        see_it_drain(system, {"first": tasks["first"], **again})


def test_without_a_log_the_last_snapshot_is_what_is_left(systems: Systems) -> None:
    with start_own(arguments=["--appendonly", "no"]) as server:
        system = systems(server)
        kept = submitted(system, ["first", "second"])
        system.redis.save()
        lost = submitted(system, ["third"])
        server.kill()
        server.restart()

        assert list(kept) == see_whole(system, kept | lost)
        see_it_drain(system, kept)


def test_a_promoted_replica_has_a_prefix_of_history_and_workers_go_on_with_it(systems: Systems) -> None:
    with (
        start_own() as master,
        start_own(arguments=["--replicaof", "127.0.0.1", str(master.port)]) as replica,
        Proxy(master.url) as line,
        client_of(replica) as heir,
    ):
        wait_until(lambda: heir.info("replication")["master_link_status"] == "up", within=WITHIN_S, what="it follows")
        system = systems(master)
        through = {"DTQ_REDIS_URL": line.url}
        api, worker = system.api(through), system.worker(through)
        kept = submitted(system, [f"kept-{number}" for number in range(TASKS)], delay_seconds=0.5)
        assert 1 == system.redis.wait(1, int(1000 * WITHIN_S))
        heir.replicaof("NO", "ONE")
        lost = submitted(system, ["lost-1", "lost-2"], delay_seconds=600)
        master.kill()
        line.point_to(replica.url)

        wait_until(
            lambda: [heir.hget(system.keys.task(one), "status") for one in kept.values()] == [b"succeeded"] * len(kept),
            within=WITHIN_S,
            what="the worker goes on with the replica",
        )
        for task_id in kept.values():
            assert [1] == system.journal.starts(task_id)
        for name, task_id in lost.items():
            assert 0 == heir.exists(system.keys.task(task_id), system.keys.idempotency(DEFAULT_QUEUE, name))
            assert None is heir.zscore(system.keys.schedule, task_id)
            body = {"task_type": "brief", "payload": {}, "idempotency_key": name}
            answer = api.http.post("/api/v1/tasks", json=body)
            assert 202 == answer.status_code, answer.text
            assert task_id != answer.json()["task_id"]
        assert worker.alive()


def test_where_replicas_are_demanded_and_there_is_none_nothing_is_accepted(systems: Systems) -> None:
    with start_own() as server:
        system = systems(server)
        api, worker = system.api(), system.worker()
        system.redis.config_set("min-replicas-to-write", 1)
        body = {"task_type": "brief", "payload": {}, "idempotency_key": "key"}

        refused = api.http.post("/api/v1/tasks", json=body)

        assert (503, "BROKER_UNAVAILABLE") == (refused.status_code, refused.json()["code"])
        assert [] == list(system.redis.scan_iter(match=f"{system.keys.task_prefix}*"))
        system.redis.config_set("min-replicas-to-write", 0)
        accepted = api.http.post("/api/v1/tasks", json=body)
        assert 202 == accepted.status_code
        system.ended(accepted.json()["task_id"])
        assert worker.alive()
