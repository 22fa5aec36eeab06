"""What operators do with queues: look, pause, resume, purge."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from dtq.application.abreast import abreast
from dtq.application.audit import AuditTrail
from dtq.application.observers import Observers
from dtq.application.patience import Patience
from dtq.application.requests import checked_queue, limit_problem, refuse
from dtq.application.workers import WorkerService
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.audit import Actor, audited
from dtq.domain.change import Change
from dtq.domain.errors import BrokerRefused, BrokerUnavailable, QueueFull, QueueNotFound
from dtq.domain.events import pause_event
from dtq.domain.lifecycle import purge
from dtq.domain.task import QueueName, Receipt, Task
from dtq.domain.text import class_name, text_of
from dtq.ports.answers import Already, Applied
from dtq.ports.broker import TaskStore
from dtq.ports.dead_letters import DeadLetters
from dtq.ports.environment import Clock, Ids
from dtq.ports.events import Observer
from dtq.ports.queues import Queues, QueueStats
from dtq.ports.workers import Signal, SignalKind, Signals

BATCH: Final = 100
"""How many entries one step of a purge removes."""


class QueueDetail(Struct, frozen=True, kw_only=True):
    """One queue and what surrounds it: the dead letters of all queues, and about how many workers serve it."""

    stats: QueueStats
    dead_letters: int
    workers_active: int


class QueueService:
    """The use cases of queues. No call of the broker takes longer than some 4 seconds: BrokerUnavailable is raised."""

    def __init__(
        self,
        queues: Queues,
        *,
        store: TaskStore,
        dead_letters: DeadLetters,
        workers: WorkerService,
        signals: Signals,
        clock: Clock,
        ids: Ids,
        trail: AuditTrail,
        observers: Sequence[Observer],
        max_queues: int,
    ) -> None:
        self._queues = queues
        self._dead_letters = dead_letters
        self._workers = workers
        self._trail = trail
        self._max_queues = max_queues
        self._store = store
        self._signals = signals
        self._clock = clock
        self._ids = ids
        self._observer = Observers(observers)

    async def names(self) -> Sequence[QueueName]:
        """Return the known queues in alphabetical order."""
        return await Patience(self._clock).read(self._queues.names)

    async def stats(self, queue: str) -> QueueStats:
        """Return the figures of a queue; one that nobody knows is empty. Raises InvalidRequest."""
        return await Patience(self._clock).read(partial(self._queues.stats, checked_queue(queue)))

    async def all(self, *, limit: int) -> Sequence[QueueStats]:
        """Return the figures of up to *limit* (1..500) queues in alphabetical order. Raises InvalidRequest.

        A queue of which something cannot be read, for somebody spoiled it, is left out and told of. Where that is each
        of them, raises BrokerRefused.
        """
        refuse([limit_problem(limit)])
        patience = Patience(self._clock)
        names = await patience.read(self._queues.names)

        async def figures(queue: QueueName) -> QueueStats | BrokerRefused:
            try:
                return await patience.read(partial(self._queues.stats, queue))
            except BrokerRefused as error:
                self._observer.noticed("queue_unreadable", queue=queue, reason=text_of(error))
                return error

        answers = await abreast(names[:limit], figures)
        found = [one for one in answers if isinstance(one, QueueStats)]
        for error in answers:
            if not found and isinstance(error, BrokerRefused):
                raise error
        return found

    async def detail(self, queue: str) -> QueueDetail:
        """Return everything about a queue. Raises InvalidRequest, or QueueNotFound where nobody knows it."""
        name = checked_queue(queue)
        if name != DEFAULT_QUEUE and name not in await self.names():
            raise QueueNotFound(name)
        return QueueDetail(
            stats=await self.stats(name),
            dead_letters=await Patience(self._clock).read(self._dead_letters.count),
            workers_active=await self._workers.active(name),
        )

    async def pause(self, queue: str, *, by: Actor) -> None:
        """Let nothing new start in a queue; repeatable.

        A queue that nobody knows becomes known. Raises InvalidRequest, or QueueFull where no more may be known.
        """
        name, now = checked_queue(queue), self._clock.now()
        names = await self.names()
        if name not in names and len(names) >= self._max_queues:
            raise QueueFull("too_many_queues", value=len(names), limit=self._max_queues)
        audit = audited("queue.pause", by=by, at=now, queue=name)
        event = pause_event(name, event_id=self._ids.token(), at=now, paused=True)
        await Patience(self._clock).once(partial(self._queues.pause, name, audit=audit, event=event))
        self._trail.tell(audit)
        self._observer.happened(event)

    async def resume(self, queue: str, *, by: Actor) -> None:
        """Let work start again in a queue, and tell its workers; repeatable. Raises InvalidRequest."""
        name, now = checked_queue(queue), self._clock.now()
        audit = audited("queue.resume", by=by, at=now, queue=name)
        event = pause_event(name, event_id=self._ids.token(), at=now, paused=False)
        await Patience(self._clock).once(partial(self._queues.resume, name, audit=audit, event=event))
        self._trail.tell(audit)
        self._observer.happened(event)
        try:
            signal = Signal(kind=SignalKind.WORK)
            await Patience(self._clock).once(partial(self._signals.tell_queue, name, signal))
        except BrokerUnavailable as error:
            # its workers look by themselves twice a second
            self._observer.noticed("signal_lost", kind=SignalKind.WORK, error=class_name(error))

    async def purge(self, queue: str, *, by: Actor, on_progress: Callable[[int], None] = lambda _: None) -> int:
        """Cancel what waits in a queue and was not read by a worker; return how many entries that were.

        It takes steps of a hundred and tells *on_progress* the count so far. What is submitted meanwhile may stay. The
        audit entry names the count, also where a step fails. Raises InvalidRequest.
        """
        name = checked_queue(queue)
        purged = 0
        at_most = (await self.stats(name)).depth
        try:
            while purged < at_most:
                found = await Patience(self._clock).read(partial(self._queues.undelivered, name, limit=BATCH))
                removed = await self._purge_batch(found)
                if not removed:
                    break
                purged += removed
                on_progress(purged)
        finally:
            await self._trail.record(audited("queue.purge", by=by, at=self._clock.now(), queue=name, count=purged))
        return purged

    async def _purge_batch(self, found: Sequence[Task | Receipt]) -> int:
        """Remove entries that no worker has read, as long as they are as they were found; return how many."""
        patience = Patience(self._clock)
        now = self._clock.now()
        decisions = [purge(one, now=now, token=self._ids.token()) for one in found if isinstance(one, Task)]
        changes = [decision for decision in decisions if isinstance(decision, Change)]
        receipts = [one for one in found if isinstance(one, Receipt)]
        removed = 0
        if changes:
            answers = await patience.write(partial(self._store.commit, changes))
            for change, answer in zip(changes, answers, strict=True):
                if isinstance(answer, Applied | Already):
                    removed += 1
                    self._observer.committed(change)
        if receipts:
            removed += await patience.write(partial(self._queues.drop, receipts))
        return removed
