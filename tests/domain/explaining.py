"""What an explanation is made from, with defaults under which nothing keeps the task."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from dtq.domain.explanation import Facts, explain
from dtq.domain.reasons import Explanation, Figure, Reason, ReasonCode
from dtq.domain.standing import Holding, Standing
from dtq.domain.task import QueueName, Task, WorkerId
from dtq.domain.workers import Heartbeat, WorkerStatus
from tests.domain.factories import BEGIN, NOW, OTHER_WORKER, WORKER

HANDED_BACK: Final = timedelta(hours=12)
INTERVAL: Final = timedelta(seconds=5)
SECOND: Final = timedelta(seconds=1)


def a_worker(worker: WorkerId = WORKER, **changes: Any) -> Heartbeat:
    """A live worker of the queue that knows the task's type and has a free slot."""
    heartbeat = Heartbeat(
        worker_id=worker,
        hostname="host-1",
        started_at=BEGIN,
        last_heartbeat=NOW - SECOND,
        queue=QueueName("default"),
        concurrency=10,
        status=WorkerStatus.READY,
        task_types=("echo_task",),
        visibility_timeout=timedelta(seconds=30),
    )
    return replace(heartbeat, **changes)


def busy(worker: WorkerId = WORKER, **changes: Any) -> Heartbeat:
    return a_worker(worker, **{"active_tasks": 10, "status": WorkerStatus.BUSY, **changes})


def silent(worker: WorkerId = WORKER) -> Heartbeat:
    return a_worker(worker, last_heartbeat=NOW - timedelta(seconds=16))


def a_holding(owner: WorkerId = WORKER, *, idle: timedelta = SECOND) -> Holding:
    return Holding(owner=owner, idle=idle)


def explained(task: Task | None, *, workers: Sequence[Heartbeat] | None = None, **standing: Any) -> Explanation:
    """Explain a task as of NOW, with one free worker where no other is given."""
    return explain(
        Facts(
            standing=Standing(task=task, **standing),
            heartbeats=[a_worker(OTHER_WORKER)] if workers is None else workers,
            heartbeat_interval=INTERVAL,
            handed_back=HANDED_BACK,
            now=NOW,
        )
    )


def codes(explanation: Explanation) -> list[str]:
    """The codes of the reasons in their order, and of what happens next."""
    return [*(reason.code.value for reason in explanation.reasons), f"next: {explanation.next.code.value}"]


def reason(explanation: Explanation, code: ReasonCode) -> Reason:
    (found,) = [one for one in explanation.reasons if one.code is code]
    return found


def figures(explanation: Explanation, code: ReasonCode) -> dict[str, Figure]:
    return dict(reason(explanation, code).figures)
