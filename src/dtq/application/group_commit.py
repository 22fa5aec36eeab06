"""Many callers, one request: what is asked for in one tick travels together."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from itertools import islice
from typing import Final, Generic, TypeVar

from msgspec import Struct

from dtq.domain.errors import BrokerBehind, BrokerUnavailable, OutcomeUnknown
from dtq.ports.answers import PartlyAnswered

MAX_BATCH: Final = 100
"""The most items in one request."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_Waiting = tuple[asyncio.Future[Answer], Item]
Request = Coroutine[None, None, Sequence[Answer]]
Send = Callable[[Sequence[Item]], Request[Answer]]
"""Sends when what it returns is awaited; what can be done before that may be done when it is called."""


class _Ahead(Struct, Generic[Item, Answer]):
    """A request that was made before it can be sent, with what it is for."""

    batch: Sequence[_Waiting[Answer, Item]]
    request: Request[Answer]


class GroupCommit(Generic[Item, Answer]):
    """Collects the items of concurrent callers into batches, of which one is under way at a time.

    An idle group sends in the same tick; what comes while a batch is under way goes with the next. As soon as *ahead*
    items wait, that one is made while the broker works on the first. A caller that is canceled takes its item along
    unless that has been sent, and holds nobody up. An item must be safe to send twice. Items that together weigh more
    than *most* do not wait: what exceeds it is refused, unless nothing waits before it.

    Where one item comes after the other, and none has company, each caller may send by himself: that saves a task, a
    future and two turns of the event loop.
    """

    def __init__(
        self,
        send: Send[Item, Answer],
        *,
        weigh: Callable[[Item], int] = lambda _: 0,
        most: int = 0,
        ahead: int | None = None,
    ) -> None:
        self._send = send
        self._weigh = weigh
        self._most = most
        self._enough = ahead
        self._waiting: OrderedDict[asyncio.Future[Answer], tuple[Item, int]] = OrderedDict()
        self._weight = 0
        self._is_under_way = False
        self._is_all = False
        self._is_thinking = False
        self._had_company = True
        self._ahead: _Ahead[Item, Answer] | None = None
        self._sender: asyncio.Task[None] | None = None

    @property
    def may_go_alone(self) -> bool:
        """Whether a caller may send by himself: nothing is under way, and the last item had no company either."""
        return not (self._is_under_way or self._had_company)

    async def alone(self, item: Item) -> Answer:
        """Send *item*, where it may go alone, and return its answer, or raise what its request raised.

        A caller that is canceled ends the request, which is his only; what came meanwhile goes with the next.
        """
        self._is_under_way = True
        try:
            (answer,) = await sent((item,), send=self._send)
        finally:
            self._is_under_way = False
            if self._waiting:
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
        if not self._is_under_way:
            self._begin()
        else:
            self._think_ahead()
        return future

    def no_more(self) -> None:
        """Take note that nothing more comes soon: however little waits, the next request is made of it."""
        self._is_all = True
        self._think_ahead()

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
    def _may_make_ahead(self) -> bool:
        if self._ahead is not None or not self._waiting:
            return False
        return self._is_all or (self._enough is not None and len(self._waiting) >= self._enough)

    def _think_ahead(self) -> None:
        """Have the next request made, where enough waits for it, when all is there that comes in this tick."""
        if not self._is_thinking and self._may_make_ahead:
            self._is_thinking = True
            asyncio.get_running_loop().call_soon(self._make_ahead)

    def _make_ahead(self) -> None:
        self._is_thinking = False
        if not self._may_make_ahead:
            return
        batch = self._batch()
        # what comes after these waits for company again
        self._is_all = self._is_all and len(batch) < len(self._waiting)
        try:
            self._ahead = _Ahead(batch, self._send([item for _, item in batch]))
        except Exception:  # noqa: BLE001 - it is raised again, and handled, when it is made to be sent
            return

    def _begin(self) -> None:
        self._is_under_way = True
        self._sender = asyncio.create_task(self._send_all(), name="group-commit")

    def _withdrawn(self, future: "asyncio.Future[Answer]") -> bool:
        """Take an item out that waits; tell whether it did."""
        if future not in self._waiting:
            return False
        self._weight -= self._waiting.pop(future)[1]
        if self._ahead is not None and any(future is one for one, _ in self._ahead.batch):
            self._unmake(self._ahead)
        return True

    def _unmake(self, ahead: _Ahead[Item, Answer]) -> None:
        """Let go of a request that was made ahead: not all that is in it is to be sent any more."""
        ahead.request.close()
        self._ahead = None

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send_next()
        finally:
            self._is_under_way, self._sender = False, None

    async def _send_next(self) -> None:
        if self._ahead is not None and any(future.done() for future, _ in self._ahead.batch):
            self._unmake(self._ahead)
        ahead, self._ahead = self._ahead, None
        batch = self._batch() if ahead is None else ahead.batch
        for future, _ in batch:
            self._weight -= self._waiting.pop(future)[1]
        self._is_all = self._is_all and bool(self._waiting)
        live = [(future, item) for future, item in batch if not future.done()]
        if live:
            self._had_company = len(live) > 1
            await self._send_batch(live, request=None if ahead is None else ahead.request)

    def _batch(self) -> Sequence[_Waiting[Answer, Item]]:
        return [(future, item) for future, (item, _) in islice(self._waiting.items(), MAX_BATCH)]

    async def _send_batch(self, batch: Sequence[_Waiting[Answer, Item]], *, request: Request[Answer] | None) -> None:
        self._think_ahead()
        answers = await sent([item for _, item in batch], send=self._send, request=request)
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


async def sent(
    items: Sequence[Item], *, send: Send[Item, Answer], request: Request[Answer] | None = None
) -> Sequence[Answer | Exception]:
    """Send *items* in one request, and return for each of them its answer, or what was raised instead.

    It may have been made already.
    """
    try:
        return await (request or send(items))
    except PartlyAnswered as partly:
        return partly.answers
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
