"""Taking work: a fetch with all that goes along with it, and the start of what it brings."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from dtq.application.hand_back import HandBack
from dtq.application.in_flight import InFlight
from dtq.application.nudge import StopSign
from dtq.application.reaping import Reaping
from dtq.application.set_aside import SetAside
from dtq.application.settling import Settling
from dtq.application.starting import Starting
from dtq.domain.change import Change
from dtq.domain.task import LeaseToken, QueueName, Receipt, WorkerId
from dtq.ports.answers import Applied
from dtq.ports.broker import Delivery, Fetch, Offer, WorkQueue
from dtq.ports.environment import Clock
from dtq.ports.events import Observer


class TakingParts(Struct, frozen=True, kw_only=True):
    """What work is taken with."""

    broker: WorkQueue
    in_flight: InFlight
    reaping: Reaping
    starting: Starting
    settling: Settling
    hand_back: HandBack
    set_aside: SetAside
    stop: StopSign
    clock: Clock
    observer: Observer


class Taken(Struct, frozen=True):
    """What a fetch brought, whether it reaped, and whether it took all that it could have."""

    fetched: Fetch
    is_reaping: bool
    is_whole: bool


class _Errand(Struct, eq=False):
    """One fetch on its way; ``promised`` is how many of the empty slots are for what it brings."""

    at_most: int
    is_reaping: bool
    promised: int = 0
    room: int = 0
    offers: Sequence[Offer] = ()

    def is_whole(self, fetched: Fetch) -> bool:
        return len(fetched.deliveries) + len(fetched.unreadable) < self.room


class Taking:
    """Takes work for one worker. However many calls of ``take`` are under way, they take no more than it has slots."""

    def __init__(self, parts: TakingParts, *, queue: QueueName, worker: WorkerId) -> None:
        self._parts = parts
        self._queue = queue
        self._worker = worker
        self._errands: set[_Errand] = set()

    @property
    def has_room(self) -> bool:
        """Whether something could be taken beside what is under way, once what has ended is recorded."""
        return self._parts.in_flight.free_without(self._parts.settling.leases) > self._promised

    async def take(self, woken: Sequence[Receipt] = (), *, at_most: int) -> Taken:
        """Fetch *at_most* so many, first of those in *woken*, which are owned already, and start what comes.

        Of several that are under way one reaps. Raises WorkerReplaced.
        """
        parts = self._parts
        is_reaping = parts.reaping.is_due and not any(errand.is_reaping for errand in self._errands)
        errand = _Errand(at_most, is_reaping)
        self._errands.add(errand)
        try:
            fetched, deliveries = await self._fetch(errand, woken)
            # once it stops nothing is decided about any more: what was taken is handed back in the end
            if not parts.stop.is_raised():
                await self._start(deliveries, woken=woken, fetched=fetched)
        finally:
            self._errands.remove(errand)
        return Taken(fetched, is_reaping, errand.is_whole(fetched))

    @property
    def _promised(self) -> int:
        return sum([errand.promised for errand in self._errands])

    async def _fetch(self, errand: _Errand, woken: Sequence[Receipt]) -> tuple[Fetch, Sequence[Delivery]]:
        """Fetch, run what that has started, and return what else it brought that can be started."""
        parts = self._parts
        asked_at = parts.clock.monotonic()
        send = partial(self._send, errand, woken)
        fetched = await parts.settling.take_along(send, at_most=errand.at_most)
        parts.starting.begin(fetched, offered=errand.offers)
        parts.set_aside.add(fetched.unreadable)
        deliveries = [
            one for one in fetched.deliveries if one.started is None and not parts.in_flight.owns(one.receipt)
        ]
        if errand.is_reaping:
            parts.reaping.done(
                is_whole=errand.is_whole(fetched),
                has_found=bool(fetched.unreadable)
                or any(one.task is not None and one.task.lease is not None for one in deliveries),
            )
        if parts.reaping.observe(fetched.now, asked_at=asked_at):
            parts.observer.noticed("clock_jumped", queue=self._queue)
            # their owners may be alive, and only seem silent: they win these entries back by their next extension
            deliveries = [one for one in deliveries if one.task is None or one.task.lease is None]
        # what runs has its slot by now
        errand.promised = len(deliveries)
        return fetched, deliveries

    async def _send(self, errand: _Errand, woken: Sequence[Receipt], ends: Sequence[Change]) -> Fetch:
        parts = self._parts
        free = parts.in_flight.free_without(_leases(ends))
        share = min(free - self._promised, errand.at_most)
        # each that is recorded makes room for one
        limit = share - len(ends)
        # and so it is with those whose handlers go on, which keep their slots: then it is an empty one that is filled
        errand.promised = share - (free - parts.in_flight.free)
        offers = parts.starting.offer(share)
        errand.offers = offers.starts
        fetched = await parts.broker.fetch(
            self._queue,
            worker=self._worker,
            limit=limit,
            reap_idle=parts.reaping.idle if errand.is_reaping else None,
            held=woken,
            after=ends,
            offers=offers,
        )
        errand.room = limit + sum([isinstance(answer, Applied) for answer in fetched.answers])
        return fetched

    async def _start(self, deliveries: Sequence[Delivery], *, woken: Sequence[Receipt], fetched: Fetch) -> None:
        """Hand back what of *woken* was not taken, and start *deliveries*."""
        if woken:
            taken = [one.receipt for one in fetched.deliveries if one.started is not None]
            taken += [one.receipt for one in deliveries]
            taken += [one.receipt for one in fetched.unreadable]
            await self._parts.hand_back.give(set(woken).difference(taken))
        if deliveries:
            await self._parts.starting.start(deliveries)


def _leases(ends: Sequence[Change]) -> Sequence[LeaseToken]:
    return [change.before.lease for change in ends if change.before is not None and change.before.lease is not None]
