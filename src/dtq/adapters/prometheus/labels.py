"""Label values: never more of them than the operator allows, whatever strangers send."""

from collections.abc import Collection, Iterable
from typing import Final

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.task import QueueName

INVALID: Final = "invalid"
"""Stands for a queue's name that is not registered, or is no name."""

OTHER: Final = "other"
"""Stands for the queues beyond the limit, in a process that has seen so many."""

UNKNOWN: Final = "unknown"
"""Stands for a task type that has no handler here."""


class Labels:
    """What queues and task types are called in metrics; at most *max_queues* names beside the three above."""

    def __init__(self, *, task_types: Collection[str], max_queues: int) -> None:
        self._task_types = frozenset(task_types)
        self._max_queues = max_queues
        self._queues = {str(DEFAULT_QUEUE)}

    def of_task(self, queue: str, task_type: str) -> tuple[str, str]:
        """Return the labels of a registered queue and of a task type; they stay what they are."""
        return self.queue(queue), task_type if task_type in self._task_types else UNKNOWN

    def queue(self, name: str) -> str:
        """Return the label of a queue that is known to be registered."""
        if name in self._queues:
            return name
        self.learn((QueueName(name),))
        return name if name in self._queues else OTHER

    def claimed_queue(self, name: object) -> str:
        """Return the label of what somebody says is a queue."""
        return name if isinstance(name, str) and name in self._queues else INVALID

    def learn(self, names: Iterable[QueueName]) -> None:
        """Take note of registered queues, as far as there is room."""
        for name in names:
            if len(self._queues) >= self._max_queues:
                return
            self._queues.add(name)
