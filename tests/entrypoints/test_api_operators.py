"""Queues, workers, dead letters and the audit trail over HTTP, on every adapter."""

from datetime import timedelta

import pytest

from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Receipt, WorkerId
from dtq.domain.workers import WorkerStatus
from tests.contract.conftest import harness, open_harness
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, now, run, submit, take
from tests.entrypoints.serving import KEY, WITH_KEY, serving
from tests.factories import WORKER, a_heartbeat

__all__ = ["harness", "open_harness"]

S = TaskStatus
TERM = timedelta(seconds=15)
MAIL = QueueName("mail")

ACTS = {
    "queue.pause": "/api/v1/queue/mail/pause",
    "queue.resume": "/api/v1/queue/mail/resume",
    "queue.purge": "/api/v1/queue/mail/purge",
    "dlq.purge": "/api/v1/dlq/purge",
}
READS = (
    "/api/v1/tasks",
    "/api/v1/queues",
    "/api/v1/queues/default",
    "/api/v1/workers",
    "/api/v1/dlq",
    "/api/v1/audit",
    "/api/v1/task-types",
    "/health",
    "/ready",
)


async def test_queues_are_listed_with_their_figures(harness: Harness) -> None:
    await run(harness, queue=MAIL)
    await submit(harness, queue=MAIL)
    await submit(harness, queue=MAIL, delay=timedelta(seconds=60))
    await submit(harness)

    async with serving(harness.backend) as client:
        whole = (await client.get("/api/v1/queues")).json()["queues"]
        first = (await client.get("/api/v1/queues?limit=1")).json()["queues"]

    mail = {"queue": "mail", "depth": 2, "pending": 1, "paused": False, "retry_scheduled": 1}
    assert ["default", "mail"] == [queue["queue"] for queue in whole]
    assert mail == whole[1]
    assert whole[:1] == first


async def test_a_queue_is_shown_with_what_surrounds_it(harness: Harness) -> None:
    await bring_to(harness, S.DEAD_LETTERED)
    beat = a_heartbeat(last_heartbeat=now(harness))
    await harness.backend.workers.announce(beat, expires_in=TERM)
    other = WorkerId("worker-0000000f")
    await harness.backend.workers.announce(
        a_heartbeat(worker_id=other, queue=MAIL, last_heartbeat=now(harness)), expires_in=TERM
    )

    async with serving(harness.backend) as client:
        answer = await client.get("/api/v1/queues/default")

    assert {"dlq_depth": 1, "workers_active": 1, "depth": 0, "queue": "default"}.items() <= answer.json().items()


async def test_the_default_queue_is_always_there_and_others_when_they_are_known(harness: Harness) -> None:
    async with serving(harness.backend) as client:
        default = await client.get("/api/v1/queues/default")
        unknown = await client.get("/api/v1/queues/mail")
        await client.post("/api/v1/queue/mail/pause")
        known = await client.get("/api/v1/queues/mail")
        wrong = await client.get("/api/v1/queues/Mail")

    assert (200, 0) == (default.status_code, default.json()["depth"])
    assert (404, "QUEUE_NOT_FOUND") == (unknown.status_code, unknown.json()["code"])
    assert (200, True) == (known.status_code, known.json()["paused"])
    assert (400, "queue") == (wrong.status_code, wrong.json()["errors"][0]["field"])


async def test_pause_and_resume_say_what_holds_now_and_may_be_repeated(harness: Harness) -> None:
    async with serving(harness.backend) as client:
        answers = [await client.post(f"/api/v1/queue/mail/{act}") for act in ("pause", "pause", "resume", "resume")]

    assert [200] * 4 == [answer.status_code for answer in answers]
    assert [{"queue": "mail", "paused": paused} for paused in (True, True, False, False)] == [
        answer.json() for answer in answers
    ]


async def test_no_more_queues_than_the_bound_are_made_known_by_pauses(harness: Harness) -> None:
    async with serving(harness.backend, max_queues="2") as client:
        answers = [await client.post(f"/api/v1/queue/queue-{number}/pause") for number in range(4)]

    assert [200, 200, 429, 429] == [answer.status_code for answer in answers]
    assert ("QUEUE_FULL", "1") == (answers[3].json()["code"], answers[3].headers["retry-after"])
    assert 2 == len(await harness.backend.queues.names())


async def test_a_purge_cancels_what_waits_and_says_how_much(harness: Harness) -> None:
    ids = [(await submit(harness, queue=MAIL)).task_id for _ in range(3)]
    held = await take(harness, queue=MAIL, limit=1)

    async with serving(harness.backend) as client:
        answer = await client.post("/api/v1/queue/mail/purge")
        again = await client.post("/api/v1/queue/mail/purge")
        statuses = [(await client.get(f"/api/v1/tasks/{task_id}")).json()["status"] for task_id in ids]

    assert ({"queue": "mail", "purged": 2}, {"queue": "mail", "purged": 0}) == (answer.json(), again.json())
    assert ["queued", "cancelled", "cancelled"] == sorted(statuses, reverse=True)
    assert 1 == len(held)


async def test_dead_letters_are_listed_newest_first_and_purged(harness: Harness) -> None:
    ids = [(await bring_to(harness, S.DEAD_LETTERED)).task_id for _ in range(3)]

    async with serving(harness.backend) as client:
        listed = (await client.get("/api/v1/dlq?limit=2")).json()
        shown = (await client.get(f"/api/v1/dlq/{ids[0]}")).json()
        purged = (await client.post("/api/v1/dlq/purge")).json()
        empty = (await client.get("/api/v1/dlq")).json()

    assert [ids[2], ids[1]] == [letter["task_id"] for letter in listed["dead_letters"]]
    assert 3 == listed["dlq_depth"]
    assert not any("task" in letter for letter in listed["dead_letters"])
    assert (ids[0], "dead_lettered") == (shown["task"]["task_id"], shown["task"]["status"])
    assert (1, False, "default", False) == tuple(
        shown[name] for name in ("attempts_made", "retryable", "original_queue", "malformed")
    )
    assert ({"purged": 3}, {"dead_letters": [], "dlq_depth": 0}) == (purged, empty)


async def test_a_malformed_dead_letter_is_shown_as_one(harness: Harness) -> None:
    await harness.forge(QueueName("default"), priority=5, fields={"task_id": "\x1b[31m", "surprise": "1"})
    [delivery] = await take(harness, limit=1)
    assert await harness.backend.broker.bury(delivery, worker=WORKER, at=now(harness))

    async with serving(harness.backend) as client:
        [letter] = (await client.get("/api/v1/dlq")).json()["dead_letters"]

    assert (True, "malformed_entry") == (letter["malformed"], letter["last_error"])
    assert letter["task_id"].isprintable()
    assert isinstance(delivery.receipt, Receipt)


async def test_workers_are_shown_as_their_heartbeats_tell(harness: Harness) -> None:
    busy = a_heartbeat(status=WorkerStatus.BUSY, active_tasks=2, last_heartbeat=now(harness))
    await harness.backend.workers.announce(busy, expires_in=TERM)

    async with serving(harness.backend) as client:
        [listed] = (await client.get("/api/v1/workers")).json()["workers"]
        shown = (await client.get(f"/api/v1/workers/{WORKER}")).json()
        unknown = await client.get("/api/v1/workers/worker-ffffffff")
        no_id = await client.get("/api/v1/workers/a%0Ab")

    assert listed == shown
    assert ("busy", 2, "host-1", "default") == tuple(
        shown[name] for name in ("status", "active_tasks", "hostname", "queue")
    )
    assert [(404, "WORKER_NOT_FOUND")] * 2 == [
        (answer.status_code, answer.json()["code"]) for answer in (unknown, no_id)
    ]


async def test_a_worker_whose_heartbeat_has_expired_is_stale(harness: Harness) -> None:
    await harness.backend.workers.announce(a_heartbeat(last_heartbeat=now(harness)), expires_in=TERM)
    await harness.advance(TERM + timedelta(seconds=1))

    async with serving(harness.backend) as client:
        shown = (await client.get(f"/api/v1/workers/{WORKER}")).json()
        figures = (await client.get("/api/v1/queues/default")).json()

    assert ("stale", None, 0) == (shown["status"], shown["last_heartbeat"], figures["workers_active"])


@pytest.mark.parametrize("action", ACTS)
async def test_an_act_needs_the_key_and_is_audited(harness: Harness, action: str) -> None:
    async with serving(harness.backend, api_key=KEY) as client:
        refused = await client.post(ACTS[action])
        nothing = (await client.get("/api/v1/audit")).json()["entries"]
        done = await client.post(ACTS[action], headers={**WITH_KEY, "X-Request-ID": "req-7"})
        [entry] = (await client.get("/api/v1/audit")).json()["entries"]

    assert (401, "UNAUTHORIZED") == (refused.status_code, refused.json()["code"])
    assert [] == nothing
    assert 200 == done.status_code
    assert (action, "req-7", "done") == (entry["action"], entry["request_id"], entry["outcome"])
    assert entry["actor"].startswith("api-key:")
    assert ("mail" if action.startswith("queue") else None) == entry["queue"]


@pytest.mark.parametrize("path", READS)
async def test_reads_need_no_key(harness: Harness, path: str) -> None:
    async with serving(harness.backend, api_key=KEY) as client:
        answer = await client.get(path)

    assert 200 == answer.status_code


async def test_the_audit_trail_is_shown_newest_first(harness: Harness) -> None:
    async with serving(harness.backend) as client:
        for act in ("pause", "resume", "purge"):
            await client.post(f"/api/v1/queue/mail/{act}")
        entries = (await client.get("/api/v1/audit?limit=2")).json()["entries"]

    assert ["queue.purge", "queue.resume"] == [entry["action"] for entry in entries]
    assert [0, None] == [entry["count"] for entry in entries]


async def test_task_types_are_those_that_can_be_submitted(harness: Harness) -> None:
    async with serving(harness.backend) as client:
        answer = await client.get("/api/v1/task-types")

    assert ["greet"] == [one["task_type"] for one in answer.json()["task_types"]]
