"""Every key and channel name, made from one prefix, and what bounds each key: a lifetime or a trim."""

import re
from typing import Final

from dtq.domain.task import QueueName, TaskId, WorkerId

BANDS: Final = tuple(range(9, -1, -1))
"""The priorities of a queue, in the order in which they are served."""

_DIGITS: Final = tuple(map(str, BANDS))

GROUP: Final = "workers"
"""The consumer group of every task stream."""

MAX_RECENT: Final = 10_000
MAX_AUDIT: Final = 10_000

_BOUNDS: Final = {
    r"stream:[a-z0-9_-]+:p[0-9]": "an entry goes in the step that ends its delivery; admission limits the rest",
    r"stream:dead-letter": "trimmed to the dead-letter limit at each addition",
    r"stream:audit": f"trimmed to about {MAX_AUDIT} at each addition",
    r"retry:schedule": "admission limits the delayed tasks, and retries are tasks that were admitted",
    r"retry:claimed": "holds what the schedule held",
    r"tasks:recent": f"trimmed to {MAX_RECENT} at each addition",
    r"queues": "admission limits the names; the leader removes unused ones",
    r"queue:[a-z0-9_-]+:paused": "one a queue that an operator paused",
    r"workers": "the leader removes the names of workers that fell silent",
}
"""The keys without a lifetime, by what follows the prefix, each with its bound."""


class Keyspace:
    """The names of one deployment. Nothing else in the program spells one.

    Lifetimes: a task, its result and its idempotency record have those of the retention, a worker that of its
    heartbeats, the cancel marks that of a task, the lock its term. The other keys have bounds, see ``bound_of``.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix: Final = prefix
        self.dead_letters: Final = f"{prefix}:stream:dead-letter"
        self.audit: Final = f"{prefix}:stream:audit"
        self.schedule: Final = f"{prefix}:retry:schedule"
        self.claimed: Final = f"{prefix}:retry:claimed"
        self.recent: Final = f"{prefix}:tasks:recent"
        self.queues: Final = f"{prefix}:queues"
        self.workers: Final = f"{prefix}:workers"
        self.cancelled: Final = f"{prefix}:cancelled"
        self.lock: Final = f"{prefix}:lock:scheduler"
        self.events: Final = f"{prefix}:events"
        self.task_prefix: Final = f"{prefix}:task:"

    def task(self, task_id: TaskId) -> str:
        """Return the hash that is a task's record."""
        return self.task_prefix + task_id

    def result(self, task_id: TaskId) -> str:
        """Return the text that is a task's result."""
        return f"{self.prefix}:result:{task_id}"

    def idempotency(self, queue: QueueName, key: str) -> str:
        """Return the record of an idempotency key; a queue name has no colon, so two of them never meet."""
        return f"{self.prefix}:idempotency:{queue}:{key}"

    def stream(self, queue: QueueName, priority: int) -> str:
        """Return the stream of one priority of a queue."""
        before, after = self.around_queue
        return f"{before}{queue}{after}{priority}"

    def streams(self, queue: QueueName) -> tuple[str, ...]:
        """Return the ten streams of a queue in the order of BANDS."""
        bands = f"{self.prefix}:stream:{queue}:p"
        return tuple([bands + digit for digit in _DIGITS])

    def paused(self, queue: QueueName) -> str:
        """Return the switch that pauses a queue."""
        return f"{self.prefix}:queue:{queue}:paused"

    def worker(self, worker: WorkerId) -> str:
        """Return the hash that is a worker's last sign of life."""
        return f"{self.prefix}:worker:{worker}"

    def worker_channel(self, worker: WorkerId) -> str:
        """Return the channel on which one worker is told things."""
        return f"{self.prefix}:control:{worker}"

    def queue_channel(self, queue: QueueName) -> str:
        """Return the channel on which all workers of a queue are told things."""
        return f"{self.prefix}:control:queue:{queue}"

    def scratch(self, name: str) -> str:
        """Return a key that start-up checks may write and remove."""
        return f"{self.prefix}:scratch:{name}"

    @property
    def around_queue(self) -> tuple[str, str]:
        """Return what stands before and after the queue in the name of a stream."""
        return f"{self.prefix}:stream:", ":p"

    @property
    def is_one_slot(self) -> bool:
        """Whether a cluster keeps all these keys in one slot: the prefix has a hash tag."""
        return re.search(r"\{[^}]+\}", self.prefix) is not None

    def bound_of(self, key: str) -> str | None:
        """Say what bounds a key that has no lifetime; None where nothing does."""
        name = key.removeprefix(f"{self.prefix}:")
        return next((bound for pattern, bound in _BOUNDS.items() if re.fullmatch(pattern, name)), None)
