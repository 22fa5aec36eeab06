"""Everything that one memory backend knows, and how its parts are read together."""

import asyncio
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.adapters.memory.channels import Channels
from dtq.adapters.memory.expiring import Expiring
from dtq.adapters.memory.faults import Faults
from dtq.adapters.memory.streams import Queue, Stream
from dtq.domain.audit import AuditEntry
from dtq.domain.entry import milliseconds, usable_task_id
from dtq.domain.events import Event
from dtq.domain.status import Place
from dtq.domain.task import NO_VERSION, EntryId, LeaseToken, QueueName, Receipt, Task, TaskId, Version, place_of
from dtq.ports.backend import BackendOptions
from dtq.ports.broker import Delivery
from dtq.ports.environment import Clock
from dtq.ports.workers import Signal

MAX_RECENT: Final = 10_000
MAX_AUDIT: Final = 10_000
EVENTS: Final = "events"


class Record(Struct, frozen=True):
    """A stored task, payload included, and the tokens of its last commits."""

    task: Task
    tokens: tuple[Version, ...]


class Slot(Struct, frozen=True, kw_only=True):
    """A task's member of the schedule; ``claimed_at`` tells when a leader took it on loan."""

    queue: QueueName
    due: datetime
    claimed_at: datetime | None = None


class Lead(Struct, frozen=True):
    """Who leads, and until when."""

    token: LeaseToken
    until: datetime


class State:
    """The structures of one broker. They hold what they are given and decide nothing."""

    def __init__(self, clock: Clock, *, options: BackendOptions) -> None:
        self.clock = clock
        self.options = options
        self.faults = Faults()
        self.started_at = clock.monotonic()
        self.records = Expiring[TaskId, Record](clock)
        self.results = Expiring[TaskId, str](clock)
        self.keys = Expiring[tuple[QueueName, str], str](clock)
        self.queues: dict[QueueName, Queue] = {}
        self.known: set[QueueName] = set()
        self.paused: set[QueueName] = set()
        self.schedule: dict[TaskId, Slot] = {}
        self.letters = Stream()
        self.marks = Expiring[TaskId, bool](clock)
        self.recent: deque[TaskId] = deque(maxlen=MAX_RECENT)
        self.audit: deque[AuditEntry] = deque(maxlen=MAX_AUDIT)
        self.events = Channels[Event]()
        self.signals = Channels[Signal]()
        self.lead: Lead | None = None
        self._waiting: dict[QueueName, set[asyncio.Future[None]]] = {}

    def task(self, task_id: TaskId) -> Task | None:
        """Return the task as stored, with its payload."""
        record = self.records.get(task_id)
        return None if record is None else record.task

    def has_payload(self, task_id: TaskId) -> bool:
        """Tell whether the task's record still has its payload, which is never empty."""
        task = self.task(task_id)
        return task is not None and bool(task.payload)

    def readable(self, task_id: TaskId) -> Task | None:
        """Return the task as a listing gets it: none where the record is garbled."""
        return None if task_id in self.faults.garbled else self.task(task_id)

    def version(self, task_id: TaskId) -> Version:
        """Return the version that is stored, which is empty where no task is."""
        task = self.task(task_id)
        return NO_VERSION if task is None else task.version

    def queue(self, name: QueueName) -> Queue:
        """Return the queue of this name, empty where it is new."""
        return self.queues.setdefault(name, Queue())

    def holds(self, task: Task) -> bool:
        """Tell whether the place that *task* should be in holds it."""
        match place_of(task):
            case Place.SCHEDULE:
                return task.task_id in self.schedule
            case Place.READY | Place.HELD:
                return task.entry_id in self.stream(task.queue, task.priority).entries
            case Place.DEAD:
                return task.dlq_entry_id in self.letters.entries
            case Place.NOWHERE:
                return True

    def stream(self, queue: QueueName, priority: int) -> Stream:
        """Return the stream of one priority of a queue, which an unknown queue has empty."""
        known = self.queues.get(queue)
        return Stream() if known is None else known.bands[priority]

    def live_task_of(self, receipt: Receipt, fields: Mapping[str, str]) -> Task | None:
        """Return the task whose own entry this is, or None where the entry is no live task's."""
        task_id = usable_task_id(fields)
        task = None if task_id is None else self.task(task_id)
        if task is None or place_of(task) not in {Place.READY, Place.HELD} or task.receipt != receipt:
            return None
        return task

    def delivery(self, receipt: Receipt, fields: Mapping[str, str]) -> Delivery:
        """Return an entry as its reader gets it."""
        task_id = usable_task_id(fields)
        task = None if task_id is None else self.task(task_id)
        return Delivery(
            receipt=receipt,
            fields=fields,
            task=None if task is None else replace(task, payload=fields.get("payload")),
            cancelled=task_id is not None and self.marks.get(task_id) is not None,
        )

    def add_entry(self, queue: QueueName, priority: int, fields: Mapping[str, str]) -> EntryId:
        """Append an entry to a queue, and wake whoever waits for one."""
        entry_id = self.queue(queue).bands[priority].add(fields, at_ms=milliseconds(self.clock.now()))
        for woken in self._waiting.pop(queue, set()):
            if not woken.done():
                woken.set_result(None)
        return entry_id

    def add_letter(self, fields: Mapping[str, str]) -> EntryId:
        """Append a dead letter; beyond the limit the oldest goes."""
        entry_id = self.letters.add(fields, at_ms=milliseconds(self.clock.now()))
        while len(self.letters.entries) > self.options.dead_letter_limit:
            self.letters.remove(next(iter(self.letters.entries)))
        return entry_id

    async def arrival(self, queue: QueueName, *, within: timedelta) -> None:
        """Wait until an entry is added to *queue*, or the time is over."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.clock.call_later(within, lambda: None if woken.done() else woken.set_result(None))
        self._waiting.setdefault(queue, set()).add(woken)
        try:
            await woken
        finally:
            timer.cancel()
            self._leave(queue, woken)

    def _leave(self, queue: QueueName, woken: asyncio.Future[None]) -> None:
        readers = self._waiting.get(queue, set())
        readers.discard(woken)
        if not readers:
            self._waiting.pop(queue, None)

    @property
    def waiting(self) -> int:
        """How many readers wait for an entry."""
        return sum(map(len, self._waiting.values()))

    def leads(self, token: LeaseToken) -> bool:
        """Tell whether *token* leads now."""
        return self.lead is not None and self.lead.token == token and self.lead.until > self.clock.now()

    def scheduled_of(self, queue: QueueName) -> int:
        """Count the scheduled tasks of a queue, those on loan included."""
        return sum(slot.queue == queue for slot in self.schedule.values())


def bare(task: Task | None) -> Task | None:
    """Leave the payload out, where a port's answer comes without."""
    return None if task is None else replace(task, payload=None)
