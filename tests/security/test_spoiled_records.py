"""Checks 7 to 9: what is spoiled in Redis costs itself alone: lists stay readable, other tasks run, nothing is a 500.

Values that a single read meets: tests/adapters/redis/test_codec.py and tests/property/test_codec.py.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.task import TaskId
from tests.judged.waiting import wait_until
from tests.security.site import WITHIN_S, Site, standing
from tests.servers import RedisServer

DEEP = "[" * 100_000
HIDDEN = '[{"x": ' + DEEP
PICKLE = "cos\nsystem\n(S'true'\ntR."

NO_JSON: dict[str, str | bytes] = {
    "text": "not json",
    "bytes": b"\xff\xfe",
    "pickle": PICKLE,
    "deep": DEEP,
    "deep and closed": "[" * 5000 + "]" * 5000,
    "NaN": '{"a": NaN}',
    "two documents": "{} {}",
    "forged": '{}, "status": "succeeded"',
    "empty": "",
}
FIELDS: dict[str, dict[str, str | bytes]] = {
    "history": {"history": HIDDEN},
    "earlier lives": {"previous_attempts": HIDDEN},
    "no history": {"history": "x"},
    "below zero": {"attempt": "-5"},
    "beyond all": {"attempt": "9" * 24},
    "no attempts": {"max_attempts": "0"},
    "a lease": {"lease": "x"},
    "discarded": {"discarded": "1"},
    "a status": {"status": "sleeping"},
    "a moment": {"created_at": "9" * 30},
    "a version": {"version": b"\xff"},
    "a duration": {"timeout_ms": "-1"},
    "a queue": {"queue": "UPPER:*"},
    "a priority": {"priority": "77"},
}
LISTS = ("/api/v1/tasks", "/api/v1/dlq", "/api/v1/audit", "/api/v1/queues", "/api/v1/workers")
FOREIGN_ACTS: dict[str, dict[str, str]] = {
    "no act": {"x": "y"},
    "a moment": {"actor": "a", "action": "x", "ts": "9" * 30, "request_id": "r", "task_id": "", "queue": ""},
    "no moment": {"actor": "a", "action": "x", "ts": "soon", "request_id": "r", "task_id": "", "queue": ""},
    "a count": {"actor": "a", "action": "x", "ts": "1", "request_id": "r", "task_id": "", "queue": "", "count": "x"},
}


@pytest.fixture(scope="module")
def site(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A deployment of these tests' own: what they spoil is nobody else's."""
    with standing(redis_server, folder=tmp_path_factory.mktemp("spoiled"), settings={}) as site:
        yield site


@contextmanager
def forgotten(site: Site, task_id: str) -> Iterator[None]:
    """Take a spoiled task away in the end, so that it is no other test's."""
    keys, redis = site.system.keys, site.system.redis
    try:
        yield
    finally:
        redis.delete(keys.task_prefix + task_id, f"{keys.prefix}:result:{task_id}")
        for names in (keys.schedule, keys.claimed, keys.recent):
            redis.zrem(names, task_id)


def read(answer: httpx.Response) -> Any:
    """Read an answer as strictly as JSON is meant."""
    assert answer.status_code < 500 or answer.json()["code"] == "RECORD_UNREADABLE", answer.text
    return json.loads(answer.content, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def see_readable(site: Site, task_id: str) -> None:
    """See that every list, and the task itself, is an answer."""
    see_lists_readable(site)
    for folder in ("tasks", "dlq"):
        read(site.api.http.get(f"/api/v1/{folder}/{task_id}"))


def see_lists_readable(site: Site) -> None:
    """See that every list is an answer, and none is missing because of one row."""
    for path in LISTS:
        answer = site.api.http.get(path)
        assert 200 == answer.status_code, answer.text
        read(answer)


@pytest.mark.parametrize("name", NO_JSON)
@pytest.mark.parametrize("field", ["payload", "metadata"])
def test_a_text_that_is_no_json_spoils_no_answer(site: Site, field: str, name: str) -> None:
    task_id = site.submitted("echo", queue="spoiled", delay_seconds=3600)
    site.spoil(task_id, **{field: NO_JSON[name]})

    with forgotten(site, task_id):
        see_readable(site, task_id)


@pytest.mark.parametrize("name", NO_JSON)
def test_a_result_that_is_no_json_spoils_no_answer(site: Site, name: str) -> None:
    task_id = site.run("echo")["task_id"]
    site.system.raw_redis.set(site.system.keys.result(TaskId(task_id)), NO_JSON[name], keepttl=True)

    with forgotten(site, task_id):
        see_readable(site, task_id)


@pytest.mark.parametrize("name", FIELDS)
def test_a_spoiled_field_spoils_no_list(site: Site, name: str) -> None:
    task_id = site.submitted("echo", queue="spoiled", delay_seconds=3600)
    site.spoil(task_id, **FIELDS[name])

    with forgotten(site, task_id):
        see_lists_readable(site)


@pytest.mark.parametrize("name", ["history", "below zero", "discarded"])
def test_what_is_asked_of_a_spoiled_record_is_no_fault_of_ours(site: Site, name: str) -> None:
    task_id = site.submitted("echo", queue="spoiled", delay_seconds=3600)
    site.spoil(task_id, **FIELDS[name])

    with forgotten(site, task_id):
        read(site.api.http.get(f"/api/v1/tasks/{task_id}"))
        read(site.api.http.post(f"/api/v1/tasks/{task_id}/cancel"))


@pytest.mark.parametrize("name", FIELDS)
def test_a_spoiled_record_holds_up_no_task_that_is_due_beside_it(site: Site, name: str) -> None:
    tasks = [site.submitted("echo", delay_seconds=0.3) for _ in range(5)]
    site.spoil(tasks[2], **FIELDS[name])

    see_the_rest_done(site, tasks)


@pytest.mark.parametrize("name", FIELDS)
def test_a_spoiled_record_holds_up_no_task_that_waits_beside_it(site: Site, name: str) -> None:
    http = site.api.http
    http.post("/api/v1/queue/default/pause")
    tasks = [site.submitted("echo") for _ in range(5)]
    site.spoil(tasks[2], **FIELDS[name])
    http.post("/api/v1/queue/default/resume")

    see_the_rest_done(site, tasks)


def see_the_rest_done(site: Site, tasks: list[str]) -> None:
    """See that all tasks but the third, which is spoiled, are done soon."""
    rest = [task_id for task_id in tasks if task_id != tasks[2]]
    with forgotten(site, tasks[2]):
        wait_until(lambda: site.system.count_ended(rest) == len(rest), within=WITHIN_S / 2, what="the others are done")
    site.see_work_goes_on()


@pytest.mark.parametrize("name", FOREIGN_ACTS)
def test_a_foreign_entry_does_not_hide_the_trail(site: Site, name: str) -> None:
    site.api.http.post("/api/v1/queue/default/resume", headers={"X-Request-ID": "before-it"})
    entry = site.system.redis.xadd(site.system.keys.audit, FOREIGN_ACTS[name])

    answer = site.api.http.get("/api/v1/audit", params={"limit": 5})
    site.system.redis.xdel(site.system.keys.audit, entry)

    assert 200 == answer.status_code, answer.text
    assert "before-it" in [act["request_id"] for act in answer.json()["entries"]]


@pytest.mark.parametrize("text", ["x", "[1]", '{"task_id": "x"}', '{"x": ' + DEEP, "\ufffd"])
def test_a_spoiled_idempotency_record_is_no_fault_of_ours(site: Site, text: str) -> None:
    site.run("echo", idempotency_key="spoiled", queue="default")
    [key] = site.system.redis.keys(f"{site.system.prefix}:idempotency:default:spoiled")
    site.system.redis.set(key, text, keepttl=True)

    answer = site.post('{"task_type": "echo", "payload": {}, "idempotency_key": "spoiled"}')
    site.system.redis.delete(key)

    read(answer)
    assert "may have been carried out" not in answer.text


@pytest.mark.parametrize("text", ["x", "[1]", '{"x": ' + DEEP, '"' + "x" * 1_000_000 + '"', "\ufffd"])
def test_whatever_is_published_on_our_channels_ends_no_listener(site: Site, text: str) -> None:
    keys, redis = site.system.keys, site.system.redis
    for channel in (keys.events, keys.worker_channel(site.worker.worker_id), keys.queue_channel(DEFAULT_QUEUE)):
        redis.publish(channel, text)
    site.see_work_goes_on()

    task_id = site.submitted("misbehave", '{"deed": "wait"}', max_attempts=1)
    wait_until(lambda: site.system.task(task_id).status == "running", within=WITHIN_S, what="it runs")
    site.api.http.post(f"/api/v1/tasks/{task_id}/cancel")

    assert "cancelled" == site.ended(task_id).status
