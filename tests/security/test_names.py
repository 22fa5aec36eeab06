"""Check 11: a name that a stranger chooses is part of a key only where its whole form is right, and no pattern.

The forms themselves: tests/domain/test_admission.py.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest

from tests.judged.waiting import wait_until
from tests.security.site import ENTRY, JSON, WITHIN_S, Site

NAMES = (
    "a:b",
    "*",
    "a*",
    "?",
    "[a-z]",
    "../x",
    "a/b",
    "UPPER",
    "default\n",
    "\ndefault",
    "default\r\nDEL x",
    "default\x00",
    "q" * 65,
    "-a",
    "{tag}",
    "dtq:queues",
    "\u0435cho",
    "a b",
)
GOOD_NAMES = ("dead-letter", "audit", "paused", "p5", "a", "q" * 64, "0", "schedule", "recent", "workers")
IDS = ("*", "..", "0" * 31, "0" * 33, "0" * 32 + "\n", "F" * 32, "x" * 32, "0" * 31 + "*", "?" * 32, "x" * 5000)
KEYS = ("k\n", "a b", "", "k" * 201, "k" * 100_000, "\u00e4", "k\x00")
GOOD_KEYS = ("k", ":", "*", "a:b", "{x}", "..", "[a]", "k" * 200, "~!@#$%^&()")
SCANS = {
    "KEYS",
    "SCAN",
    "SSCAN",
    "HSCAN",
    "ZSCAN",
    "RANDOMKEY",
    "SORT",
    "EVAL",
    "FLUSHDB",
    "FLUSHALL",
    "CONFIG",
    "DEBUG",
}


@contextmanager
def watched(site: Site) -> Iterator[list[str]]:
    """Collect every command that the server is sent meanwhile, by MONITOR."""
    commands: list[str] = []
    redis: Any = site.system.redis
    with redis.monitor() as monitor:
        yield commands
        redis.echo("enough")
        while (command := monitor.next_command()["command"]) != "ECHO enough":
            commands.append(command)


KINDS = {
    "stream:dead-letter": "stream",
    "stream:audit": "stream",
    "retry:schedule": "zset",
    "tasks:recent": "zset",
    "queues": "hash",
    "workers": "set",
    "cancelled": "set",
}
"""Keys that a queue of the same name could be taken for."""

OF_THE_LEADER = re.compile(r"SCAN \d+ MATCH judged\\*-\w+:task:\* COUNT \d+")
"""The one walk through keys that there is, on a pattern without anybody's words: it looks for tasks without a place."""


def try_bad_names(site: Site) -> list[int]:
    """Use every bad name wherever the API takes one."""
    http, statuses = site.api.http, []
    for name in NAMES:
        safe = quote(name, safe="")
        paths = [f"/api/v1/queues/{safe}", f"/api/v1/tasks?queue={safe}", f"/api/v1/events?queue={safe}&seconds=1"]
        statuses += [http.get(path).status_code for path in paths]
        statuses += [http.post(f"/api/v1/queue/{safe}/{act}").status_code for act in ("pause", "resume", "purge")]
        body: dict[str, object] = {"task_type": "echo", "payload": {}, "queue": name}
        statuses.append(http.post("/api/v1/tasks", json=body).status_code)
    for task_id in IDS:
        safe = quote(task_id, safe="")
        statuses += [http.get(f"/api/v1/{folder}/{safe}").status_code for folder in ("tasks", "dlq", "workers")]
        statuses += [http.post(f"/api/v1/dlq/{safe}/{act}").status_code for act in ("requeue", "discard")]
        statuses.append(http.post(f"/api/v1/tasks/{safe}/cancel").status_code)
    for key in KEYS:
        body = {"task_type": "echo", "payload": {}, "idempotency_key": key}
        statuses.append(http.post("/api/v1/tasks", content=json.dumps(body), headers=JSON).status_code)
    return statuses


def test_a_bad_name_touches_no_key_and_is_no_pattern(alone: Site) -> None:
    before = alone.lasting_keys()

    with watched(alone) as commands:
        statuses = try_bad_names(alone)

    assert {400, 404} == set(statuses)
    # refused acts on ids are audited, under the fixed name of the trail
    assert before | {alone.system.keys.audit} >= alone.lasting_keys()
    assert commands
    scans = [command for command in commands if command.split(" ")[0].upper() in SCANS]
    assert [] == [command for command in scans if not OF_THE_LEADER.fullmatch(command)]
    assert [] == foreign_keys(alone, commands)


def foreign_keys(site: Site, commands: list[str]) -> list[str]:
    """What was named in a command like a key of a deployment, and belongs to another, or is none of ours."""
    own = site.system.prefix + ":"
    words = [word for command in commands for word in command.split(" ")[1:] if word.startswith(("dtq:", "judged-"))]
    return [word for word in words if not word.startswith(own)]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_queue_may_be_called_like_anything_of_ours(alone: Site, name: str) -> None:
    task_id = alone.submitted("echo", queue=name)

    paused = alone.api.http.post(f"/api/v1/queue/{name}/pause")
    shown = alone.api.http.get(f"/api/v1/queues/{name}").json()
    resumed = alone.api.http.post(f"/api/v1/queue/{name}/resume")
    purged = alone.api.http.post(f"/api/v1/queue/{name}/purge")

    assert [200] * 3 == [answer.status_code for answer in (paused, resumed, purged)]
    assert (name, 1, True) == (shown["queue"], shown["depth"], shown["paused"])
    assert "cancelled" == alone.shown(task_id)["status"]
    kinds = {key: alone.system.redis.type(f"{alone.system.prefix}:{key}") for key in KINDS}
    assert {} == {key: kind for key, kind in kinds.items() if kind not in {"none", KINDS[key]}}
    alone.see_work_goes_on()


@pytest.mark.parametrize("key", GOOD_KEYS)
def test_an_idempotency_key_is_text_and_not_a_pattern(alone: Site, key: str) -> None:
    first = alone.submitted("echo", idempotency_key=key, delay_seconds=3600, queue="keyed")

    again = alone.post(json.dumps({"task_type": "echo", "payload": {}, "idempotency_key": key, "queue": "keyed"}))
    elsewhere = alone.post(json.dumps({"task_type": "echo", "payload": {}, "idempotency_key": key, "queue": "keyed-2"}))

    assert (409, first) == (again.status_code, again.json()["task_id"])
    assert 202 == elsewhere.status_code


def test_a_queue_and_a_key_cannot_be_put_together_to_the_name_of_another(alone: Site) -> None:
    one = alone.submitted("echo", queue="a", idempotency_key="b:c", delay_seconds=3600)
    other = alone.post(json.dumps({"task_type": "echo", "payload": {}, "queue": "a-b", "idempotency_key": "c"}))

    assert 202 == other.status_code
    assert one != other.json()["task_id"]


@pytest.mark.parametrize("task_id", IDS)
def test_an_entry_cannot_name_a_key_by_its_task_id(alone: Site, task_id: str) -> None:
    before = alone.lasting_keys()
    stream = alone.system.keys.stream("default", 5)  # type: ignore[arg-type]  # a queue's name

    alone.system.redis.xadd(stream, {**ENTRY, "task_id": task_id})
    wait_until(lambda: not alone.system.redis.xlen(stream), within=WITHIN_S, what="the entry is gone")

    assert before | {alone.system.keys.dead_letters, stream} >= alone.lasting_keys()


def test_no_name_leads_out_of_the_folder_of_assets(site: Site) -> None:
    for name in (
        "../pages.py",
        "..%2fpages.py",
        "%2e%2e/pages.py",
        "..%5cpages.py",
        "/etc/passwd",
        "start.js%00",
    ):
        assert 404 == site.api.http.get(f"/docs/assets/{name}").status_code, name
