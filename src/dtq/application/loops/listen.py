"""Hints from outside: cancellations and work that came back are looked at at once, instead of at the next turn."""

from collections.abc import Awaitable, Callable

from dtq.domain.task import QueueName, TaskId, WorkerId
from dtq.ports.workers import SignalKind, Signals


class Listen:
    """Hears the signals to one worker and its queue; whatever was told while it did not listen, it looks up first."""

    def __init__(
        self,
        signals: Signals,
        *,
        worker: WorkerId,
        queue: QueueName,
        on_cancel: Callable[[TaskId], Awaitable[None]],
        on_work: Callable[[], None],
    ) -> None:
        self._signals = signals
        self._worker = worker
        self._queue = queue
        self._on_cancel = on_cancel
        self._on_work = on_work

    async def step(self) -> None:
        """Listen until the connection breaks."""
        async with self._signals.listen(self._worker, queue=self._queue) as told:
            self._on_work()
            async for signal in told:
                if signal.kind is SignalKind.WORK:
                    self._on_work()
                elif signal.task_id is not None:
                    await self._on_cancel(signal.task_id)
