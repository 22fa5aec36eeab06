"""The worker's pulse: leases are kept, cancellations heard, and the worker is seen, whatever its main loop does."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from dtq.application.handover import Handover, Hold
from dtq.application.leases import extend
from dtq.application.settings import ExitCode, WorkerSettings
from dtq.domain.errors import BrokerUnavailable, DtqError
from dtq.domain.workers import Heartbeat, expires_in, self_reported
from dtq.ports.backend import Backend
from dtq.ports.environment import Clock

_SILENT_BEATS: Final = 3
"""After how many beats without a sign of the main loop it counts as hung."""


class Beat:
    """Extends leases every beat and announces the worker every heartbeat; may run in a thread of its own.

    *heartbeat* is the worker's first one, whose names and times stay as they are.

    A lease is kept until its task's own deadline and a grace. If the main loop has not recorded the task by then and
    gives no sign of life, it hangs for good: the leases are given up and *abort* ends the process.
    """

    def __init__(
        self,
        handover: Handover,
        *,
        settings: WorkerSettings,
        heartbeat: Heartbeat,
        abort: Callable[[ExitCode], None],
    ) -> None:
        self._handover = handover
        self._settings = settings
        self._heartbeat = heartbeat
        self._abort = abort
        self._announce_at = float("-inf")
        self._was_draining = False
        self._ticks = -1
        self._silent_beats = 0

    async def run(self, backend: Backend) -> None:
        """Beat until canceled."""
        while True:
            try:
                await self._beat(backend)
            except DtqError as error:
                self._handover.on_trouble("beat_failed", type(error).__name__)
            except Exception as error:  # noqa: BLE001 - a beat that ended would cost every running task its lease
                self._handover.on_trouble("beat_failed", type(error).__name__)
            await backend.clock.sleep(self._settings.beat_interval)

    async def _beat(self, backend: Backend) -> None:
        holds = self._handover.condition.holds
        now = backend.clock.monotonic()
        self._listen()
        # a task that blocks the loop within its own deadline keeps its neighbors' attempts from being recorded, too
        is_over = all(hold.until <= now for hold in holds)
        if holds and is_over and self._silent_beats >= _SILENT_BEATS:
            await self._give_up(backend, holds)
            return
        kept = () if is_over else holds
        self._handover.on_reports(await extend(backend.broker, kept, worker=self._settings.worker_id))
        await self._announce(backend)

    def _listen(self) -> None:
        # counted in beats, since a process that was stopped as a whole would look hung by the clock
        ticks = self._handover.ticks
        self._silent_beats = self._silent_beats + 1 if ticks == self._ticks else 0
        self._ticks = ticks

    async def _give_up(self, backend: Backend, holds: tuple[Hold, ...]) -> None:
        try:
            receipts = [hold.lease.receipt for hold in holds]
            await backend.broker.release(receipts, worker=self._settings.worker_id)
        except BrokerUnavailable as error:
            # the entries go stale by themselves
            self._handover.on_trouble("release_failed", type(error).__name__)
        self._abort(ExitCode.HUNG)

    async def _announce(self, backend: Backend) -> None:
        now = backend.clock.monotonic()
        is_draining = self._handover.condition.draining
        if now < self._announce_at and is_draining == self._was_draining:
            return
        await backend.workers.announce(
            self._sign_of_life(backend.clock), expires_in=expires_in(self._settings.heartbeat_interval)
        )
        self._was_draining = is_draining
        self._announce_at = now + self._settings.heartbeat_interval / timedelta(seconds=1)

    def _sign_of_life(self, clock: Clock) -> Heartbeat:
        condition = self._handover.condition
        return replace(
            self._heartbeat,
            last_heartbeat=clock.now(),
            status=self_reported(active=condition.active, draining=condition.draining),
            active_tasks=condition.active,
            tasks_processed=condition.processed,
            tasks_failed=condition.failed,
            tasks_retried=condition.retried,
        )
