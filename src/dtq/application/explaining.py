"""What clients and operators are told when a task does not run."""

from functools import partial
from typing import Final

from dtq.application.patience import Patience
from dtq.application.reaping import SURELY_HANDED_BACK
from dtq.application.requests import known_task_id
from dtq.application.workers import WorkerService
from dtq.domain.errors import TaskNotFound
from dtq.domain.explanation import Facts, explain
from dtq.domain.reasons import Explanation
from dtq.ports.environment import Clock
from dtq.ports.locating import Locator

COUNTED: Final = 1000
"""Up to how many entries before a task are counted one by one."""


class ExplanationService:
    """Says why a task is not running. A call answers within some 4 seconds, or raises BrokerUnavailable."""

    def __init__(self, locator: Locator, *, workers: WorkerService, clock: Clock) -> None:
        self._locator = locator
        self._workers = workers
        self._clock = clock

    async def explain(self, task_id: str) -> Explanation:
        """Say why a task is not running, and what happens next. Raises TaskNotFound."""
        known = known_task_id(task_id)
        patience = Patience(self._clock)
        standing = await patience.read(partial(self._locator.locate, known, count_up_to=COUNTED))
        if standing is None:
            raise TaskNotFound(known)
        # whoever works is of no interest to what has ended, or cannot be read
        is_alive = standing.task is not None and not standing.task.is_terminal
        facts = Facts(
            standing=standing,
            heartbeats=await self._workers.heard(patience=patience) if is_alive else (),
            heartbeat_interval=self._workers.heartbeat_interval,
            handed_back=SURELY_HANDED_BACK,
            now=self._clock.now(),
        )
        return explain(facts)
