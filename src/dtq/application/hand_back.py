"""Giving entries back to the peers, so that one that is idle takes them at once."""

from collections.abc import Callable, Collection

from dtq.application.tenure import Tenure
from dtq.domain.task import QueueName, Receipt, WorkerId
from dtq.ports.broker import WorkQueue
from dtq.ports.workers import Signal, SignalKind, Signals


class HandBack:
    """Hands entries back and announces it; *on_done* hears of it too, since the entries may come round again."""

    def __init__(
        self,
        broker: WorkQueue,
        *,
        signals: Signals,
        tenure: Tenure,
        worker: WorkerId,
        queue: QueueName,
        on_done: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._signals = signals
        self._tenure = tenure
        self._worker = worker
        self._queue = queue
        self._on_done = on_done

    async def give(self, receipts: Collection[Receipt]) -> int:
        """Hand back what of *receipts* this worker still owns, and return how many that were. Raises WorkerReplaced."""
        if not receipts:
            return 0
        await self._tenure.ensure()
        released = await self._broker.release(receipts, worker=self._worker)
        if released:
            self._on_done()
            await self._signals.tell_queue(self._queue, Signal(kind=SignalKind.WORK))
        return released

    async def give_all_but(self, kept: Collection[Receipt]) -> int:
        """Hand back everything that this worker owns, except *kept*, and return how many that were.

        Raises WorkerReplaced.
        """
        # another worker of this id owns what it runs by the same name
        await self._tenure.renew()
        owned = await self._broker.owned(self._queue, worker=self._worker)
        return await self.give([receipt for receipt in owned if receipt not in kept])
