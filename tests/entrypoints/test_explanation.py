"""Why a task is not running, over HTTP on every adapter, and as docs/api.md has it."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from dtq.domain.reasons import NextCode, ReasonCode
from dtq.domain.status import TaskStatus
from dtq.domain.workers import WorkerStatus
from tests.contract.conftest import harness, open_harness
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, now, reap_one, run, seconds, submit, take_one
from tests.entrypoints.conftest import Api
from tests.entrypoints.serving import KEY, serving
from tests.factories import QUEUE, TASK_TYPE, WORKER, a_heartbeat, a_task_id, an_audit_entry, an_event

__all__ = ["harness", "open_harness"]

PAGE = (Path(__file__).resolve().parents[2] / "docs/api.md").read_text()
SECTION = PAGE.partition("\n## Why a task is not running\n")[2].partition("\n## ")[0]
REASONS = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*)\|$", SECTION.partition("| next |")[0], re.MULTILINE))
NEXT = re.findall(r"^\| `(\w+)` \|", SECTION.partition("| next |")[2], re.MULTILINE)
TERM = timedelta(seconds=15)


async def announce(harness: Harness, **changes: object) -> None:
    fields = {"last_heartbeat": now(harness), "task_types": (TASK_TYPE,), **changes}
    await harness.backend.workers.announce(a_heartbeat(**fields), expires_in=TERM)


async def explained(harness: Harness, task_id: str) -> dict[str, object]:
    async with serving(harness.backend, api_key=KEY) as client:
        answer = await client.get(f"/api/v1/tasks/{task_id}/explanation")
    assert 200 == answer.status_code, answer.text
    body: dict[str, object] = answer.json()
    for reason in answer.json()["reasons"]:
        assert set(reason["figures"]) <= set(re.findall(r"`(\w+)`", REASONS[reason["code"]])), reason
        assert set(reason["about"]) <= set(reason["figures"])
    return body


def codes(body: dict[str, object]) -> list[str]:
    reasons, following = body["reasons"], body["next"]
    assert isinstance(reasons, list)
    assert isinstance(following, dict)
    return [*(reason["code"] for reason in reasons), f"next: {following['code']}"]


def test_the_page_has_every_code_in_order_and_no_other() -> None:
    assert list(ReasonCode) == list(REASONS)
    assert list(NextCode) == NEXT


async def test_a_queued_task_has_all_that_keeps_it(harness: Harness) -> None:
    for priority in (9, 9, 5):
        await submit(harness, priority=priority)
    task = await submit(harness)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    await announce(harness, status=WorkerStatus.BUSY, active_tasks=4)

    body = await explained(harness, task.task_id)

    assert ["paused", "all_busy", "ahead", "next: resume"] == codes(body)
    assert (task.task_id, "queued", TASK_TYPE, "default", 5) == tuple(
        body[name] for name in ("task_id", "status", "task_type", "queue", "priority")
    )
    reasons = body["reasons"]
    assert isinstance(reasons, list)
    assert {"workers": 1, "slots": 4, "taken": 4} == reasons[1]["figures"]
    assert {"above": 2, "before": 1} == reasons[2]["figures"]


async def test_a_task_that_a_free_worker_will_take(harness: Harness) -> None:
    task = await submit(harness)
    await announce(harness)

    assert ["nothing", "next: start"] == codes(await explained(harness, task.task_id))


async def test_a_task_that_nobody_serves_or_whose_type_nobody_knows(harness: Harness) -> None:
    task = await submit(harness)
    assert ["no_worker", "next: start_worker"] == codes(await explained(harness, task.task_id))

    await announce(harness, task_types=("other",))

    assert ["no_worker_for_type", "next: fail_unknown_type"] == codes(await explained(harness, task.task_id))


async def test_a_worker_that_fell_silent_serves_nobody(harness: Harness) -> None:
    task = await submit(harness)
    await announce(harness)
    await harness.advance(TERM + seconds(1))

    assert ["no_worker", "next: start_worker"] == codes(await explained(harness, task.task_id))


async def test_a_task_that_runs_and_whose_worker_is_lost(harness: Harness) -> None:
    task = await run(harness)
    await announce(harness)
    assert ["running", "next: finish"] == codes(await explained(harness, task.task_id))

    await harness.advance(seconds(20))
    await announce(harness, worker_id="worker-00000002", started_at=now(harness))

    assert ["lost", "next: take_over"] == codes(await explained(harness, task.task_id))


async def test_a_task_whose_worker_was_lost_days_ago_was_not_handed_back(harness: Harness) -> None:
    task = await run(harness)

    await harness.advance(seconds(2 * 86_400))

    assert ["lost", "no_worker", "next: start_worker"] == codes(await explained(harness, task.task_id))


async def test_a_task_that_was_read_handed_back_and_taken_over(harness: Harness) -> None:
    task, running = await submit(harness), await run(harness, queue="other")
    delivery = await take_one(harness, task)
    await announce(harness)
    assert ["read", "next: start"] == codes(await explained(harness, task.task_id))

    await harness.backend.broker.release([delivery.receipt], worker=WORKER)
    assert ["handed_back", "next: take_over"] == codes(await explained(harness, task.task_id))

    await reap_one(harness, running)
    assert ["read", "next: start"] == codes(await explained(harness, running.task_id))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (TaskStatus.PENDING, ["delayed", "no_worker", "next: move_when_due"]),
        (TaskStatus.RETRYING, ["retry", "no_worker", "next: move_when_due"]),
        (TaskStatus.SUCCEEDED, ["ended", "next: nothing"]),
        (TaskStatus.DEAD_LETTERED, ["ended", "next: requeue"]),
        (TaskStatus.FAILED, ["ended", "next: submit_again"]),
        (TaskStatus.CANCELLED, ["ended", "next: submit_again"]),
        (TaskStatus.EXPIRED, ["ended", "next: submit_again"]),
    ],
)
async def test_a_task_that_waits_for_its_time_or_has_ended(
    harness: Harness, status: TaskStatus, expected: list[str]
) -> None:
    task = await bring_to(harness, status)

    assert expected == codes(await explained(harness, task.task_id))


async def test_a_task_that_nobody_moves_when_it_is_due(harness: Harness) -> None:
    task = await submit(harness, delay=seconds(5))
    await harness.advance(seconds(6))
    assert ["no_leader", "no_worker", "next: start_worker"] == codes(await explained(harness, task.task_id))

    await announce(harness)

    assert ["due", "next: move_when_due"] == codes(await explained(harness, task.task_id))


async def test_what_foul_play_has_done(harness: Harness) -> None:
    homeless, purged, garbled, spoiled = [
        *[await submit(harness), await bring_to(harness, TaskStatus.DEAD_LETTERED)],
        *[await submit(harness), await submit(harness, priority=3)],
    ]
    await announce(harness)
    await harness.orphan(homeless.task_id)
    await harness.orphan(purged.task_id)
    await harness.garble(garbled.task_id)
    await harness.spoil(QUEUE, priority=3)

    bodies = [await explained(harness, task.task_id) for task in (homeless, purged, garbled, spoiled)]

    assert [
        ["homeless", "next: rehome"],
        ["ended", "next: submit_again"],
        ["record_unreadable", "next: mend"],
        ["priority_unreadable", "next: mend"],
    ] == [codes(body) for body in bodies]
    assert (None, None, None, None) == tuple(bodies[2][name] for name in ("status", "task_type", "queue", "priority"))


@pytest.mark.parametrize("task_id", [a_task_id(), "no-id", "%0a"])
async def test_an_unknown_task_is_not_found(api: Api, task_id: str) -> None:
    answer = await api.client.get(f"/api/v1/tasks/{task_id}/explanation")

    assert (404, "TASK_NOT_FOUND") == (answer.status_code, answer.json()["code"])


async def test_a_query_is_refused(api: Api) -> None:
    answer = await api.client.get(f"/api/v1/tasks/{await api.submit()}/explanation?wait=1")

    assert (400, "INVALID_REQUEST") == (answer.status_code, answer.json()["code"])
