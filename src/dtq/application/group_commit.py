"""Many callers, one request: what is asked for in one tick travels together."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from dtq.domain.errors import BrokerBehind, BrokerUnavailable, OutcomeUnknown

MAX_BATCH: Final = 100
"""The most items in one request."""

MAX_ABREAST: Final = 2
"""The most requests that are under way at a time."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_Waiting = tuple[asyncio.Future[Answer], Item]
Send = Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]


class GroupCommit(Generic[Item, Answer]):
    """Collects the items of concurrent callers into batches, of which one is under way at a time.

    An idle group sends in the same tick; what comes while a batch is under way goes with the next. As soon as *beside*
    items wait, they go in a second request while the first is under way: the broker works on one while the next is
    made. A caller that is canceled takes its item along unless that has been sent, and holds nobody up. An item must be
    safe to send twice. Items that together weigh more than *most* do not wait: what exceeds it is refused, unless
    nothing waits before it.

    Where one item comes after the other, and none has company, each caller may send by himself: that saves a task, a
    future and two turns of the event loop.
    """

    def __init__(
        self,
        send: Send[Item, Answer],
        *,
        weigh: Callable[[Item], int] = lambda _: 0,
        most: int = 0,
        beside: int | None = None,
    ) -> None:
        self._send = send
        self._weigh = weigh
        self._most = most
        self._beside = beside
        self._waiting: OrderedDict[asyncio.Future[Answer], tuple[Item, int]] = OrderedDict()
        self._weight = 0
        self._under_way = 0
        self._is_about_to_take = False
        self._is_hurried = False
        self._had_company = True
        self._senders: set[asyncio.Task[None]] = set()

    @property
    def may_go_alone(self) -> bool:
        """Whether a caller may send by himself: nothing is under way, and the last item had no company either."""
        return not (self._under_way or self._had_company)

    async def alone(self, item: Item) -> Answer:
        """Send *item*, where it may go alone, and return its answer, or raise what its request raised.

        A caller that is canceled ends the request, which is his only; what came meanwhile goes with the next.
        """
        self._under_way += 1
        try:
            (answer,) = await sent((item,), send=self._send)
        finally:
            self._under_way -= 1
            if self._may_begin:
                self._begin()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def one(self, item: Item) -> Answer:
        """Send *item* and return its answer, or raise what its request raised.

        Raises BrokerBehind where too much waits.
        """
        future = self.ask(item)
        try:
            return await future
        finally:
            self._withdrawn(future)

    def ask(self, item: Item) -> "asyncio.Future[Answer]":
        """Send *item*, and return what its answer will be; what is refused at once is in there too."""
        weight = self._weigh(item)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if self._waiting and self._weight + weight > self._most:
            future.set_exception(BrokerBehind(f"what waits for the broker weighs {self._weight} of {self._most}"))
            return future
        self._waiting[future] = item, weight
        self._weight += weight
        if self._may_begin:
            self._begin()
        return future

    def hurry(self) -> None:
        """Take note that nothing comes for a while: what waits is worth a request beside another one."""
        self._is_hurried = True
        if self._may_begin:
            self._begin()

    def give_up(self, futures: Iterable["asyncio.Future[Answer]"]) -> None:
        """Let what was asked for and is not answered yet fail, for want of time."""
        for future in futures:
            is_unsent = self._withdrawn(future)
            if not future.done():
                future.set_exception(
                    BrokerUnavailable("its turn did not come in time: nothing of it was sent")
                    if is_unsent
                    else no_answer()
                )

    def forget(self, futures: Iterable["asyncio.Future[Answer]"]) -> None:
        """Take note that nobody asks for the answers any more: what waits is not sent."""
        for future in futures:
            self._withdrawn(future)
            if not future.cancel() and not future.cancelled():
                future.exception()

    @property
    def _may_begin(self) -> bool:
        """Whether what waits is to go in one more request, now."""
        if self._is_about_to_take or not self._waiting:
            return False
        return not self._under_way or (self._under_way < MAX_ABREAST and self._are_enough)

    @property
    def _are_enough(self) -> bool:
        """Whether what waits is worth a request beside another one."""
        return self._is_hurried or (self._beside is not None and len(self._waiting) >= self._beside)

    def _begin(self) -> None:
        self._under_way += 1
        self._is_about_to_take = True
        sender = asyncio.create_task(self._send_all(), name="group-commit")
        self._senders.add(sender)
        sender.add_done_callback(self._senders.discard)

    def _withdrawn(self, future: "asyncio.Future[Answer]") -> bool:
        """Take an item out that waits; tell whether it did."""
        if future not in self._waiting:
            return False
        self._weight -= self._waiting.pop(future)[1]
        return True

    async def _send_all(self) -> None:
        try:
            while batch := self._next_batch():
                self._had_company = len(batch) > 1
                await self._send_batch(batch)
                if self._under_way > 1 and not self._are_enough:
                    # what waits goes with what comes until the other request is answered
                    return
        finally:
            self._under_way -= 1

    def _next_batch(self) -> list[_Waiting[Answer, Item]]:
        self._is_about_to_take = self._is_hurried = False
        batch: list[_Waiting[Answer, Item]] = []
        while self._waiting and len(batch) < MAX_BATCH:
            future, (item, weight) = self._waiting.popitem(last=False)
            self._weight -= weight
            if not future.done():
                batch.append((future, item))
        return batch

    async def _send_batch(self, batch: list[_Waiting[Answer, Item]]) -> None:
        answers = await sent([item for _, item in batch], send=self._send)
        for (future, _), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)


async def together(items: Sequence[Item], *, send: Send[Item, Answer]) -> Sequence[Answer]:
    """Send *items* in one request and return their answers, or raise what one of them brought about."""
    answers: list[Answer] = []
    for answer in await sent(items, send=send):
        if isinstance(answer, Exception):
            raise answer
        answers.append(answer)
    return answers


async def sent(items: Sequence[Item], *, send: Send[Item, Answer]) -> Sequence[Answer | Exception]:
    """Send *items* in one request, and return for each of them its answer, or what was raised instead."""
    try:
        return await send(items)
    except asyncio.CancelledError:
        sender = asyncio.current_task()
        if sender is None or sender.cancelling():
            raise
        # who stopped it is none of its callers: they are not canceled
        return [no_answer()] * len(items)
    except Exception as error:  # noqa: BLE001 - it is the callers' to handle
        # isinstance asks a stranger's __class__, which may raise
        if len(items) == 1 or issubclass(type(error), BrokerUnavailable):
            return [error] * len(items)
    # one item may have spoilt the batch before it was sent: only its own caller is to suffer
    return [answer for item in items for answer in await sent([item], send=send)]


def no_answer() -> OutcomeUnknown:
    """Return what a caller is told whose request was sent, and not answered in time."""
    return OutcomeUnknown("no answer came in time; it may or may not have been done")
