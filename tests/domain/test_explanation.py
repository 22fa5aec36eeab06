"""Every state of a task in every situation: which reasons hold, in which order, and what happens next."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.domain.reasons import ReasonCode
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task
from dtq.domain.workers import Heartbeat, WorkerStatus
from tests.domain.explaining import HANDED_BACK, a_holding, a_worker, busy, codes, explained, figures, reason, silent
from tests.domain.factories import ALIVE, ENDED, NOW, OTHER_WORKER, WORKER, a_task

_S = TaskStatus
LATER = NOW + timedelta(minutes=2)
SITUATIONS: list[tuple[str, list[Heartbeat], bool]] = [
    ("free", [a_worker(OTHER_WORKER)], False),
    ("paused", [a_worker(OTHER_WORKER)], True),
    ("nobody", [], False),
    ("silent", [silent(OTHER_WORKER)], False),
    ("stopped", [a_worker(OTHER_WORKER, status=WorkerStatus.STOPPED)], False),
    ("elsewhere", [a_worker(OTHER_WORKER, queue=QueueName("mail"))], False),
    ("starting", [a_worker(OTHER_WORKER, status=WorkerStatus.STARTING)], False),
    ("draining", [a_worker(OTHER_WORKER, status=WorkerStatus.DRAINING)], False),
    ("untyped", [a_worker(OTHER_WORKER, task_types=("other",))], False),
    ("busy", [busy(OTHER_WORKER)], False),
]
KEEPS = {
    "free": [],
    "paused": ["paused"],
    "nobody": ["no_worker"],
    "silent": ["no_worker"],
    "stopped": ["no_worker"],
    "elsewhere": ["no_worker"],
    "starting": ["workers_starting"],
    "draining": ["workers_draining"],
    "untyped": ["no_worker_for_type"],
}
"""What keeps the queue in each situation but that of full slots, which matters to what is ready only."""
QUEUED = {
    "free": ["nothing", "next: start"],
    "paused": ["paused", "next: resume"],
    "nobody": ["no_worker", "next: start_worker"],
    "silent": ["no_worker", "next: start_worker"],
    "stopped": ["no_worker", "next: start_worker"],
    "elsewhere": ["no_worker", "next: start_worker"],
    "starting": ["workers_starting", "next: start_worker"],
    "draining": ["workers_draining", "next: start_worker"],
    "untyped": ["no_worker_for_type", "next: fail_unknown_type"],
    "busy": ["all_busy", "next: wait_for_turn"],
}
TAKEN_OVER = {
    "free": "next: take_over",
    "paused": "next: resume",
    "untyped": "next: take_over",
    "busy": "next: take_over",
}
NOBODY_LIVES = {"nobody", "silent", "stopped"}

situations = pytest.mark.parametrize(("name", "workers", "paused"), SITUATIONS, ids=[name for name, _, _ in SITUATIONS])


def later(status: TaskStatus) -> Task:
    return replace(a_task(status), available_at=LATER)


@situations
def test_a_queued_task(name: str, workers: list[Heartbeat], *, paused: bool) -> None:
    assert QUEUED[name] == codes(explained(a_task(), workers=workers, paused=paused))


@situations
@pytest.mark.parametrize(("status", "code"), [(_S.PENDING, "delayed"), (_S.RETRYING, "retry")])
def test_a_task_whose_time_has_not_come(
    name: str, workers: list[Heartbeat], status: TaskStatus, code: str, *, paused: bool
) -> None:
    explanation = explained(later(status), workers=workers, paused=paused)

    assert [code, *KEEPS.get(name, []), "next: move_when_due"] == codes(explanation)


@situations
@pytest.mark.parametrize("status", [_S.PENDING, _S.RETRYING])
def test_a_task_that_is_due(name: str, workers: list[Heartbeat], status: TaskStatus, *, paused: bool) -> None:
    explanation = explained(a_task(status), workers=workers, paused=paused)

    first, last = ("no_leader", "start_worker") if name in NOBODY_LIVES else ("due", "move_when_due")
    assert [first, *KEEPS.get(name, []), f"next: {last}"] == codes(explanation)


@situations
def test_a_task_that_runs(name: str, workers: list[Heartbeat], *, paused: bool) -> None:
    del name
    here = a_worker(WORKER, queue=QueueName("mail"))
    explanation = explained(a_task(_S.RUNNING), workers=[here, *workers], paused=paused, holding=a_holding())

    assert ["running", "next: finish"] == codes(explanation)


@situations
@pytest.mark.parametrize("status", [_S.QUEUED, _S.RUNNING])
@pytest.mark.parametrize(("idle", "code"), [(timedelta(seconds=40), "lost"), (HANDED_BACK, "handed_back")])
def test_a_task_that_somebody_has_to_take_over(
    name: str, workers: list[Heartbeat], status: TaskStatus, idle: timedelta, code: str, *, paused: bool
) -> None:
    explanation = explained(a_task(status), workers=workers, paused=paused, holding=a_holding(idle=idle))

    keeps = [code, *(["all_busy"] if name == "busy" else KEEPS[name])]
    if code == "handed_back":
        keeps.sort(key=lambda one: one != "paused")
    assert [*keeps, TAKEN_OVER.get(name, "next: start_worker")] == codes(explanation)


@situations
def test_a_task_that_was_read(name: str, workers: list[Heartbeat], *, paused: bool) -> None:
    del name
    explanation = explained(a_task(), workers=[a_worker(), *workers], paused=paused, holding=a_holding())

    expected = ["paused", "read", "next: resume"] if paused else ["read", "next: start"]
    assert expected == codes(explanation)


@situations
@pytest.mark.parametrize("status", ALIVE)
def test_a_task_without_a_home(name: str, workers: list[Heartbeat], status: TaskStatus, *, paused: bool) -> None:
    explanation = explained(a_task(status), workers=workers, paused=paused, is_home=False)

    assert ["homeless", *KEEPS.get(name, []), "next: rehome"] == codes(explanation)
    assert (name in NOBODY_LIVES) == ("start one" in explanation.next.text)


@situations
@pytest.mark.parametrize("status", [_S.QUEUED, _S.RUNNING])
def test_a_task_in_a_priority_that_cannot_be_read(
    name: str, workers: list[Heartbeat], status: TaskStatus, *, paused: bool
) -> None:
    explanation = explained(a_task(status), workers=workers, paused=paused, spoiled=(9, 5))

    assert ["priority_unreadable", *KEEPS.get(name, []), "next: mend"] == codes(explanation)
    assert {"queue": "default", "priority": 5} == figures(explanation, ReasonCode.PRIORITY_UNREADABLE)


@situations
@pytest.mark.parametrize("status", ENDED)
def test_a_task_that_has_ended(name: str, workers: list[Heartbeat], status: TaskStatus, *, paused: bool) -> None:
    del name
    explanation = explained(a_task(status), workers=workers, paused=paused)

    following = {_S.SUCCEEDED: "nothing", _S.DEAD_LETTERED: "requeue"}.get(status, "submit_again")
    assert ["ended", f"next: {following}"] == codes(explanation)


def test_a_record_that_cannot_be_read() -> None:
    explanation = explained(None, unreadable="the record cannot be read: KeyError")

    assert ["record_unreadable", "next: mend"] == codes(explanation)
    assert "the record cannot be read: KeyError" == explanation.reasons[0].text
    assert explanation.task is None


@pytest.mark.parametrize("changes", [{"discarded": True}, {"is_home": False}], ids=["discarded", "purged"])
def test_a_dead_letter_that_is_gone_cannot_be_requeued(changes: dict[str, Any]) -> None:
    task = replace(a_task(_S.DEAD_LETTERED), discarded=changes.pop("discarded", False))

    assert ["ended", "next: submit_again"] == codes(explained(task, **changes))


def test_an_end_says_how_when_and_why() -> None:
    texts = {status: explained(a_task(status)).reasons[0].text for status in ENDED}

    assert texts == {
        _S.SUCCEEDED: "it succeeded at 2026-11-29 12:00:01Z, in attempt 1 of 3 on worker-00000001 after 1.0 s",
        _S.FAILED: (
            "it was given up at 2026-11-29 12:00:01Z, in attempt 1 of 3 on worker-00000001 after 1.0 s: "
            "ValueError, which was its last attempt"
        ),
        _S.DEAD_LETTERED: (
            "it was given up at 2026-11-29 12:00:01Z, in attempt 1 of 3 on worker-00000001 after 1.0 s: "
            "ValueError, which was its last attempt"
        ),
        _S.CANCELLED: "it was canceled at 2026-11-29 12:00:00Z, before it was started",
        _S.EXPIRED: "it expired at 2026-11-29 12:00:00Z: its time to live was over before it was started",
    }


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        (_S.CANCELLED, {}, "before attempt 2 of 3 was started"),
        (_S.CANCELLED, {"cancel_requested": True}, "in attempt 1 of 3"),
        (_S.EXPIRED, {}, "its time to live was over before attempt 2 of 3 was started"),
    ],
)
def test_what_ended_while_it_waited_for_another_attempt_says_so(
    status: TaskStatus, changes: dict[str, Any], text: str
) -> None:
    task = replace(a_task(status), attempt=1, **changes)

    assert text in explained(task).reasons[0].text


def test_an_end_has_its_figures() -> None:
    task = a_task(_S.DEAD_LETTERED)

    assert {
        "attempt": 1,
        "max_attempts": 3,
        "finished_at": task.finished_at,
        "worker_id": WORKER,
        "took_s": 1.0,
        "error_class": "ValueError",
    } == figures(explained(task), ReasonCode.ENDED)
    assert () == reason(explained(task), ReasonCode.ENDED).about
