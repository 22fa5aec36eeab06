"""The live workers of a queue as one: what they can take, and how soon they take over what was left."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from dtq.domain.task import QueueName, WorkerId
from dtq.domain.workers import Heartbeat, WorkerStatus, is_active, liveness

TURNS: Final = 4
"""How many turns of taking over a worker has, at least, within its visibility timeout."""

_TAKING: Final = frozenset({WorkerStatus.READY, WorkerStatus.BUSY})


class Workforce(Struct, frozen=True, kw_only=True):
    """The live workers as their last heartbeats tell of them: all of them, and those that serve one queue."""

    alive: frozenset[WorkerId]
    serving: Sequence[Heartbeat]
    interval: timedelta

    def lives(self, worker: WorkerId, *, silent: timedelta) -> bool:
        """Tell whether a worker shows life: by a heartbeat, or since it extended a lease less than an interval ago."""
        return worker in self.alive or silent < self.interval

    @property
    def taking(self) -> Sequence[Heartbeat]:
        """The workers of the queue that start new work."""
        return [one for one in self.serving if one.status in _TAKING]

    @property
    def slots(self) -> int:
        """How many tasks those run at once."""
        return sum(one.concurrency for one in self.taking)

    @property
    def taken(self) -> int:
        """How many they run."""
        return sum(min(one.active_tasks, one.concurrency) for one in self.taking)

    @property
    def visibility(self) -> timedelta | None:
        """After which silence the first of the queue's workers takes an entry over; None where there is none."""
        return min((one.visibility_timeout for one in self.serving), default=None)

    def knowing(self, task_type: str) -> int:
        """Return how many of those that start new work know a task type."""
        return sum(task_type in one.task_types for one in self.taking)

    def counted(self, status: WorkerStatus) -> int:
        """Return how many workers of the queue are in a state."""
        return sum(one.status is status for one in self.serving)

    def takes_over_within(self, idle: timedelta) -> timedelta | None:
        """Return how long it takes until somebody with a free slot has taken an entry over that has been idle.

        None where nobody has one.
        """
        free = [one.visibility_timeout for one in self.taking if one.active_tasks < one.concurrency]
        return min((max(timedelta(), timeout - idle) + timeout / TURNS for timeout in free), default=None)


def workforce_of(queue: QueueName, heartbeats: Sequence[Heartbeat], *, now: datetime, interval: timedelta) -> Workforce:
    """Return who lives by these heartbeats, and who of them serves *queue*."""
    living = [one for one in heartbeats if is_active(liveness(one, now=now, interval=interval))]
    return Workforce(
        alive=frozenset(one.worker_id for one in living),
        serving=[one for one in living if one.queue == queue],
        interval=interval,
    )
