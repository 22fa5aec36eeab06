"""The worker's pulse: leases are kept, cancellations heard, and the worker is seen, whatever its main loop does."""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from dtq.application.handover import Handover, Hold, sign_of_life
from dtq.application.leases import extend
from dtq.application.settings import ExitCode, WorkerSettings
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.workers import Heartbeat, expires_in
from dtq.ports.backend import Backend

_SILENT_BEATS: Final = 3
"""After how many beats without a sign of the main loop it counts as hung."""

EMPTY_HANDED: Final = timedelta(minutes=1)
"""For how long, in beats, a main loop that runs no task may give no sign: what handlers leave behind may block it."""


class Beat:
    """Extends leases every beat and announces the worker every heartbeat; may run in a thread of its own.

    *heartbeat* is the worker's first one, whose names and times stay as they are.

    A lease is kept while the main loop lives, also past its task's deadline: the outcome may wait for a broker that was
    away. Where every deadline and its grace are over and the main loop gives no sign of life, it hangs for good: the
    leases are given up and *abort* ends the process. So it does where the broker knows another worker of this id, and
    the main loop does not end although it was told; and where a loop that runs no task gives no sign for a minute: it
    would take no work any more, and hear no signal, while its worker seemed to live.
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
        self._is_replaced = False
        self._most_silent_beats = math.ceil(EMPTY_HANDED / settings.beat_interval)

    async def run(self, backend: Backend) -> None:
        """Beat until canceled."""
        while True:
            try:
                await self._beat(backend)
            except Exception as error:  # noqa: BLE001 - a beat that ended would cost every running task its lease
                self._handover.on_trouble("beat_failed", error)
            await backend.clock.sleep(self._settings.beat_interval)

    async def _beat(self, backend: Backend) -> None:
        holds = self._handover.condition.holds
        now = backend.clock.monotonic()
        self._listen()
        is_hung = self._silent_beats >= _SILENT_BEATS
        if self._is_replaced:
            # the main loop was told, and ends the process unless it hangs
            if is_hung:
                self._abort(ExitCode.HUNG)
            return
        # a task that blocks the loop within its own deadline keeps its neighbors' attempts from being recorded, too
        if holds and is_hung and all(hold.until <= now for hold in holds):
            await self._give_up(backend, holds)
            return
        if not holds and self._silent_beats >= self._most_silent_beats:
            self._abort(ExitCode.HUNG)
            return
        self._handover.on_reports(await extend(backend.broker, holds, worker=self._settings.worker_id))
        await self._announce(backend)

    def _listen(self) -> None:
        # counted in beats, since a process that was stopped as a whole would look hung by the clock
        ticks = self._handover.ticks
        self._silent_beats = self._silent_beats + 1 if ticks == self._ticks else 0
        self._ticks = ticks

    async def _give_up(self, backend: Backend, holds: tuple[Hold, ...]) -> None:
        worker = self._settings.worker_id
        try:
            # what another process of our id has started meanwhile is owned by that id as well, but not under our lease
            kept = {report.lease for report in await extend(backend.broker, holds, worker=worker) if report.kept}
            receipts = [hold.lease.receipt for hold in holds if hold.lease.lease in kept]
            await backend.broker.release(receipts, worker=worker)
        except BrokerUnavailable as error:
            # the entries go stale by themselves
            self._handover.on_trouble("release_failed", error)
        self._abort(ExitCode.HUNG)

    async def _announce(self, backend: Backend) -> None:
        now = backend.clock.monotonic()
        condition = self._handover.condition
        if now < self._announce_at and condition.draining == self._was_draining:
            return
        sign = sign_of_life(self._heartbeat, condition, at=backend.clock.now())
        lifetime = expires_in(self._settings.heartbeat_interval)
        if not await backend.workers.announce(sign, expires_in=lifetime):
            self._is_replaced = True
            self._handover.on_replaced()
            return
        self._handover.announced_at = now
        self._was_draining = condition.draining
        self._announce_at = now + self._settings.heartbeat_interval / timedelta(seconds=1)
