"""Many callers, one request: what is asked for in one tick travels together."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from dtq.domain.errors import BrokerUnavailable

MAX_BATCH: Final = 100
"""The most items in one request."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_Waiting = tuple[Item, asyncio.Future[Answer]]


class GroupCommit(Generic[Item, Answer]):
    """Collects the items of concurrent callers into batches, of which one is under way at a time.

    An idle group sends in the same tick; what comes while a batch is under way goes with the next. A caller that is
    canceled takes its item along unless that has been sent, and holds nobody up. An item must be safe to send twice.
    """

    def __init__(self, send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._send = send
        self._waiting: deque[_Waiting[Item, Answer]] = deque()
        self._sender: asyncio.Task[None] | None = None

    async def one(self, item: Item) -> Answer:
        """Send *item* and return its answer, or raise what its request raised."""
        return await self._enqueue(item)

    async def all(self, items: Sequence[Item]) -> Sequence[Answer]:
        """Send *items* in order and return their answers, or raise what one of their requests raised."""
        return await asyncio.gather(*[self._enqueue(item) for item in items])

    def _enqueue(self, item: Item) -> "asyncio.Future[Answer]":
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all(), name="group-commit")
        return future

    async def _send_all(self) -> None:
        try:
            while batch := self._next_batch():
                await self._send_batch(batch)
        finally:
            self._sender = None

    def _next_batch(self) -> list[_Waiting[Item, Answer]]:
        batch: list[_Waiting[Item, Answer]] = []
        while self._waiting and len(batch) < MAX_BATCH:
            waiting = self._waiting.popleft()
            if not waiting[1].done():
                batch.append(waiting)
        return batch

    async def _send_batch(self, batch: list[_Waiting[Item, Answer]]) -> None:
        (answers,) = await asyncio.gather(self._send([item for item, _ in batch]), return_exceptions=True)
        if not isinstance(answers, BaseException):
            _answer(batch, answers)
        elif len(batch) > 1 and not isinstance(answers, BrokerUnavailable):
            # one item may have spoilt the batch before it was sent: only its own caller is to suffer
            for waiting in batch:
                await self._send_batch([waiting])
        else:
            _fail(batch, answers)


def _answer(batch: list[_Waiting[Item, Answer]], answers: Sequence[Answer]) -> None:
    for (_, future), answer in zip(batch, answers, strict=True):
        if not future.done():
            future.set_result(answer)


def _fail(batch: list[_Waiting[Item, Answer]], error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
