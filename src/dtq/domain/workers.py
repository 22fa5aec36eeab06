"""What a worker says of itself, and what others make of its silence."""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from dtq.domain.task import QueueName, WorkerId

WORKER_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

MISSED_BEATS: Final = 3
"""After how many silent heartbeat intervals a worker counts as stale (contract section 6)."""


class WorkerStatus(StrEnum):
    """A worker's state; STALE is what observers compute and is never self-reported."""

    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    DRAINING = "draining"
    STOPPED = "stopped"
    STALE = "stale"


class Heartbeat(Struct, frozen=True, kw_only=True):
    """One sign of life (contract section 2, and the additions queue, task_types, visibility_timeout and life).

    ``life`` is random, another one for each start: it tells two workers apart that begin under one id in one moment.
    """

    worker_id: WorkerId
    hostname: str
    started_at: datetime
    last_heartbeat: datetime
    queue: QueueName
    concurrency: int
    status: WorkerStatus
    active_tasks: int = 0
    tasks_processed: int = 0
    tasks_failed: int = 0
    tasks_retried: int = 0
    task_types: tuple[str, ...] = ()
    visibility_timeout: timedelta = timedelta(seconds=30)
    life: str = ""

    def is_of_same_life(self, other: "Heartbeat") -> bool:
        """Tell whether *other*, of the same id, comes from the very worker that this one comes from."""
        return (self.started_at, self.life) == (other.started_at, other.life)


def expires_in(interval: timedelta) -> timedelta:
    """Return how long a heartbeat is kept: as long as its worker may be silent."""
    return MISSED_BEATS * interval


def self_reported(*, active: int, draining: bool) -> WorkerStatus:
    """Return the status a started worker reports of itself."""
    if draining:
        return WorkerStatus.DRAINING
    return WorkerStatus.BUSY if active else WorkerStatus.READY


def liveness(heartbeat: Heartbeat | None, *, now: datetime, interval: timedelta) -> WorkerStatus:
    """Return what an observer makes of the last heartbeat; a missing one means stale."""
    if heartbeat is None:
        return WorkerStatus.STALE
    if heartbeat.status is WorkerStatus.STOPPED:
        return WorkerStatus.STOPPED
    silent = now - heartbeat.last_heartbeat > expires_in(interval)
    return WorkerStatus.STALE if silent else heartbeat.status


def is_active(status: WorkerStatus) -> bool:
    """Tell whether a worker in *status* is there to work, or to end what it works on."""
    return status not in {WorkerStatus.STOPPED, WorkerStatus.STALE}
