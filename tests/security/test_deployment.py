"""Check 15: every destructive act, done or refused, by API or by command, stands in the trail; the trail has a bound.

Containers, their users, rights and ports: tests/containers/test_files.py and test_system.py. The bound of the trail:
tests/adapters/redis/test_trims.py. An open API that says so at its start: tests/integration/test_guarding.py.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from dtq.adapters.system import SystemClock
from dtq.domain.findings import Kind
from tests.security.site import ACTS, WITH_KEY, Site

WHO = re.compile(r"api-key:[0-9a-f]{8}")
USER = re.compile(r"cli:[^@]+@\S+")
NOBODY = "0" * 32
TOLD = ("action", "task_id", "outcome", "request_id")


def dead(site: Site) -> str:
    task_id: str = site.run("raise", '{"error": "memory"}', max_attempts=1)["task_id"]
    return task_id


def waiting(site: Site) -> str:
    return site.submitted("echo", queue="victims", delay_seconds=3600)


def trail(site: Site) -> list[dict[str, object]]:
    """The trail, the oldest first."""
    entries: list[dict[str, object]] = site.api.http.get("/api/v1/audit", params={"limit": 500}).json()["entries"]
    return entries[::-1]


def acts_of(site: Site) -> list[tuple[str, str, str | None, str]]:
    """Acts that succeed and acts that fail: path, action, task, and what the trail must say of it."""
    cancelled, requeued, discarded = waiting(site), dead(site), dead(site)
    return [
        (f"/api/v1/tasks/{cancelled}/cancel", "task.cancel", cancelled, "done"),
        (f"/api/v1/tasks/{cancelled}/cancel", "task.cancel", cancelled, "TASK_TERMINAL"),
        (f"/api/v1/tasks/{NOBODY}/cancel", "task.cancel", NOBODY, "TASK_NOT_FOUND"),
        ("/api/v1/queue/victims/pause", "queue.pause", None, "done"),
        ("/api/v1/queue/victims/resume", "queue.resume", None, "done"),
        ("/api/v1/queue/victims/purge", "queue.purge", None, "done"),
        (f"/api/v1/dlq/{requeued}/requeue", "dlq.requeue", requeued, "done"),
        (f"/api/v1/dlq/{cancelled}/requeue", "dlq.requeue", cancelled, "NOT_DEAD_LETTERED"),
        (f"/api/v1/dlq/{discarded}/discard", "dlq.discard", discarded, "done"),
        (f"/api/v1/dlq/{discarded}/discard", "dlq.discard", discarded, "DLQ_DISCARDED"),
        (f"/api/v1/dlq/{discarded}/requeue", "dlq.requeue", discarded, "DLQ_DISCARDED"),
        (f"/api/v1/dlq/{NOBODY}/discard", "dlq.discard", NOBODY, "TASK_NOT_FOUND"),
        ("/api/v1/dlq/purge", "dlq.purge", None, "done"),
        ("/api/v1/doctor/repair", "doctor.repair", None, "done"),
    ]


def test_every_act_by_the_api_stands_in_the_trail_done_or_refused(guarded: Site) -> None:
    acts = acts_of(guarded)
    known = len(trail(guarded))

    for number, (path, _, _, _) in enumerate(acts):
        guarded.api.http.post(path, headers={**WITH_KEY, "X-Request-ID": f"act-{number}"})

    # a repair may find what other tests have spoiled, and tells of each
    parts = {f"doctor.{kind}" for kind in Kind}
    entries = [entry for entry in trail(guarded)[known:] if entry["action"] not in parts]
    expected = [
        (action, task_id, outcome, f"act-{number}") for number, (_, action, task_id, outcome) in enumerate(acts)
    ]
    assert expected == [
        tuple(entry[name] for name in ("action", "task_id", "outcome", "request_id")) for entry in entries
    ]
    assert 1 == len({entry["actor"] for entry in entries})
    for entry in entries:
        assert WHO.fullmatch(str(entry["actor"]))
        assert abs(datetime.fromisoformat(str(entry["ts"])) - SystemClock().now()) < timedelta(minutes=1)
    assert {path for path in ACTS if "{}" not in path} <= {path.replace("victims", "default") for path, *_ in acts}


def test_every_act_by_command_stands_in_the_trail_too(guarded: Site) -> None:
    cancelled, requeued = guarded.submitted("echo", queue="cancels", delay_seconds=3600), dead(guarded)
    known = len(trail(guarded))
    commands = {
        ("cancel", cancelled): ("task.cancel", cancelled, "done"),
        ("cancel", NOBODY): ("task.cancel", NOBODY, "TASK_NOT_FOUND"),
        ("queue", "resume", "victims"): ("queue.resume", None, "done"),
        ("purge", "--queue", "victims", "--yes"): ("queue.purge", None, "done"),
        ("retry-dlq", requeued): ("dlq.requeue", requeued, "done"),
        ("discard-dlq", NOBODY): ("dlq.discard", NOBODY, "TASK_NOT_FOUND"),
    }

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda words: guarded.system.command(*words), commands))

    assert [0, 3, 0, 0, 0, 3] == [one.returncode for one in done], [one.stderr for one in done]
    entries = trail(guarded)[known:]
    told = [(entry["action"], entry["task_id"], entry["outcome"]) for entry in entries]
    assert sorted(commands.values(), key=str) == sorted(told, key=str)
    for entry in entries:
        assert USER.fullmatch(str(entry["actor"]))
        assert entry["request_id"]


def test_a_discarded_letter_keeps_its_record(guarded: Site) -> None:
    task_id = dead(guarded)

    guarded.api.http.post(f"/api/v1/dlq/{task_id}/discard", headers=WITH_KEY)

    task = guarded.api.http.get(f"/api/v1/tasks/{task_id}").json()
    assert ("dead_lettered", True) == (task["status"], task["metadata"]["discarded"])
    assert "MemoryError" == task["error_class"]
    assert 404 == guarded.api.http.get(f"/api/v1/dlq/{task_id}").status_code


@pytest.mark.parametrize("act", ACTS)
def test_an_open_api_names_the_address_that_acted(site: Site, act: str) -> None:
    task_id = waiting(site)
    known = len(trail(site))

    site.api.http.post(act.format(task_id).replace("/default/", "/victims/"))

    [entry] = trail(site)[known:]
    assert "anonymous@127.0.0.1" == entry["actor"]
