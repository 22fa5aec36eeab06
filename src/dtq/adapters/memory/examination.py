"""Examinations in memory, where types, lifetimes, groups and counts cannot be spoiled."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from typing import Final

from dtq.adapters.memory.commit import key_record, key_text
from dtq.adapters.memory.delivery import HANDED_BACK
from dtq.adapters.memory.state import State, bare
from dtq.adapters.memory.workers import MemoryWorkers
from dtq.domain.facts import (
    ConsumerFact,
    CountFact,
    Denied,
    EntryFact,
    Fact,
    KeyFact,
    LetterFact,
    MemberFact,
    QueueFact,
    Record,
    TaskFact,
)
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.status import Place
from dtq.domain.task import EntryId, QueueName, Receipt, Task, TaskId, Version, WorkerId, place_of

_OFFERED: Final = WorkerId("doctor")
_IN_STREAMS: Final = frozenset({Place.READY, Place.HELD})


class MemoryExaminer:
    """A look at everything in one process."""

    def __init__(self, state: State, *, workers: MemoryWorkers) -> None:
        self._state = state
        self._workers = workers

    async def read(self, *, limit: int) -> AsyncIterator[Sequence[Fact | Denied]]:
        facts = [*self._all()]
        workers = {worker for worker in await self._workers.known() if await self._workers.get(worker) is not None}
        for queue, found in self._state.queues.items():
            known = {*await self._workers.known(), *workers}
            facts += [self._consumer(queue, worker, is_known=worker in known) for worker in sorted(found.consumers)]
        for first in range(0, len(facts), limit):
            yield facts[first : first + limit]

    async def again(self, facts: Sequence[Fact]) -> Sequence[Fact | None]:
        return [await self._again(fact) for fact in facts]

    async def _again(self, fact: Fact) -> Fact | None:
        match fact:
            case TaskFact():
                return await self._task_again(fact)
            case EntryFact(receipt=receipt):
                fields = self._state.stream(receipt.queue, receipt.priority).entries.get(receipt.entry_id)
                return None if fields is None else self._entry(receipt)
            case MemberFact(task_id=task_id):
                return self._member(task_id) if task_id in self._state.schedule else None
            case LetterFact(entry_id=entry_id):
                return self._letter(entry_id) if entry_id in self._state.letters.entries else None
            case KeyFact(queue=queue, key=key, text=text):
                return self._key(queue, key) if self._state.keys.get((queue, key)) == text else None
            case QueueFact(name=name):
                return self._queue(QueueName(name))
            case ConsumerFact(queue=queue, worker=worker):
                is_known = worker in await self._workers.known() or await self._workers.get(worker) is not None
                is_there = worker in self._state.queue(queue).consumers
                return self._consumer(queue, worker, is_known=is_known) if is_there else None
            case _:
                return fact

    async def _task_again(self, fact: TaskFact) -> Fact | None:
        now = self._task(fact.task_id)
        before, after = fact.record.task, None if now is None else now.record.task
        has_moved = before is not None and (after is None or after.version != before.version)
        if now is None or has_moved:
            return None
        lives = now.owner is not None and await self._workers.get(now.owner) is not None
        return TaskFact(**{name: getattr(now, name) for name in now.__struct_fields__} | {"owner_lives": lives})

    def _all(self) -> Iterator[Fact]:
        state = self._state
        for task_id in state.records:
            found = self._task(task_id)
            if found is not None:
                yield found
        for name, queue in state.queues.items():
            for priority, stream in queue.bands.items():
                yield from (self._entry(Receipt(name, priority, entry_id)) for entry_id in stream.entries)
        yield from map(self._member, state.schedule)
        yield from (self._letter(entry_id) for entry_id in state.letters.entries)
        yield from (self._key(queue_name, key) for queue_name, key in state.keys)
        names = state.known | state.queues.keys() | {task.queue for task in self._living()}
        yield from (fact for fact in map(self._queue, sorted(names)) if fact is not None)

    def _living(self) -> Iterator[Task]:
        tasks = (self._record(task_id).task for task_id in self._state.records)
        return (task for task in tasks if task is not None and not task.is_terminal)

    def _queue(self, name: QueueName) -> QueueFact | None:
        """Tell of a queue; of one in no list only where it holds something, or a living task is in it."""
        state, is_registered = self._state, name in self._state.known
        waiting = None if is_registered else next((one.task_id for one in self._living() if one.queue == name), None)
        holds = name in state.paused or (name in state.queues and state.queues[name].depth > 0)
        is_gone = not (is_registered or waiting or holds)
        return None if is_gone else QueueFact(name=name, is_registered=is_registered, waiting=waiting)

    def _record(self, task_id: TaskId) -> Record:
        if task_id in self._state.faults.garbled:
            return Record(fault="it is garbled")
        return Record(bare(self._state.task(task_id)))

    def _task(self, task_id: TaskId) -> TaskFact | None:
        record = self._record(task_id)
        task = record.task
        if record.is_missing or task is None:
            is_scheduled = task_id in self._state.schedule
            return None if record.is_missing else TaskFact(task_id=task_id, record=record, scheduled=is_scheduled)
        place, holds = place_of(task), self._state.holds(task)
        stream = self._state.stream(task.queue, task.priority)
        holding = None if task.entry_id is None else stream.held.get(task.entry_id)
        idle = 0.0 if holding is None else self._state.clock.monotonic() - holding.idle_since
        return TaskFact(
            task_id=task_id,
            record=record,
            has_payload=self._state.has_payload(task_id),
            entered=holds and place in _IN_STREAMS,
            hollow=holds and place in _IN_STREAMS and not stream.entries[task.entry_id or EntryId("")].get("payload"),
            owner=None if holding is None else holding.owner,
            idle=timedelta(seconds=idle),
            passed=place in _IN_STREAMS and holds and holding is None and task.entry_id not in stream.fresh,
            paused=task.queue in self._state.paused,
            scheduled=holds and place is Place.SCHEDULE,
            lettered=holds and place is Place.DEAD,
            letter=self._letter_of(task) if place is Place.DEAD and task.dlq_entry_id is None else None,
            trimmed=self._is_trimmed(task),
            unkeyed=task.idempotency_key is not None
            and self._state.keys.get((task.queue, task.idempotency_key)) is None,
            key=self._key_of_another(task),
        )

    def _key_of_another(self, task: Task) -> KeyFact | None:
        key = task.idempotency_key
        fact = None if key is None or self._state.keys.get((task.queue, key)) is None else self._key(task.queue, key)
        return None if fact is None or (fact.named and fact.named.task_id == task.task_id) else fact

    def _letter_of(self, task: Task) -> EntryId | None:
        """Return the latest dead letter that names a task."""
        letters = reversed(self._state.letters.entries.items())
        return next((entry_id for entry_id, fields in letters if fields.get("task_id") == task.task_id), None)

    def _is_trimmed(self, task: Task) -> bool:
        """Tell whether older letters than this one's may have made room for later ones."""
        return self._state.letters.added > self._state.options.dead_letter_limit and not self._state.holds(task)

    def _entry(self, receipt: Receipt) -> EntryFact:
        fields = self._state.stream(receipt.queue, receipt.priority).entries[receipt.entry_id]
        task_id = TaskId(fields.get("task_id", ""))
        marked = self._state.marks.get(task_id) is not None
        return EntryFact(
            receipt=receipt, task_id=task_id, record=self._record(task_id), cancelled=marked, fields=fields
        )

    def _member(self, task_id: TaskId) -> MemberFact:
        slot = self._state.schedule[task_id]
        due = slot.due if slot.claimed_at is None else None
        return MemberFact(task_id, self._record(task_id), due, slot.claimed_at)

    def _letter(self, entry_id: EntryId) -> LetterFact:
        task_id = TaskId(self._state.letters.entries[entry_id].get("task_id", ""))
        return LetterFact(entry_id=entry_id, task_id=task_id, record=self._record(task_id))

    def _key(self, queue: QueueName, key: str) -> KeyFact:
        text = self._state.keys.get((queue, key)) or ""
        named = key_record(text)
        record = Record() if named is None else self._record(named.task_id)
        return KeyFact(queue=queue, key=key, text=text, named=named, record=record)

    def _consumer(self, queue: QueueName, worker: WorkerId, *, is_known: bool) -> ConsumerFact:
        holdings = [one for band in self._state.queue(queue).bands.values() for one in band.held.values()]
        idle = timedelta(seconds=self._state.clock.monotonic() - self._state.started_at)
        owns = sum(one.owner == worker for one in holdings)
        return ConsumerFact(queue=queue, worker=worker, owns=owns, idle=idle, is_known=is_known)

    async def rewrite_key(
        self, queue: QueueName, *, key: str, text: str, record: IdempotencyRecord | None, lifetime: timedelta
    ) -> bool:
        if (self._state.keys.get((queue, key)) or "") != text:
            return False
        if record is None:
            return self._state.keys.remove((queue, key))
        self._state.keys.put((queue, key), key_text(record), lifetime=lifetime)
        return True

    async def limit(self, name: str, *, lifetime: timedelta) -> bool:
        del name, lifetime  # nothing is stored here without one
        return False

    async def shorten(self, name: str, *, lifetime: timedelta) -> bool:
        del name, lifetime  # nor does the lead last longer than its term
        return False

    async def prolong(self, name: str, *, lifetime: timedelta, task_id: TaskId, version: Version) -> bool:
        del name, lifetime, task_id, version  # nothing is cut short here
        return False

    async def persist(self, name: str) -> bool:
        del name  # what is to stay stays here
        return False

    async def recount(self, fact: CountFact) -> bool:
        del fact  # counted anew each time
        return False

    async def strike(self, name: str) -> bool:
        queue = QueueName(name)
        was_known = queue in self._state.known
        self._state.known.discard(queue)
        return was_known

    async def rewind(self, queue: QueueName, *, priority: int) -> bool:
        del queue, priority  # a group knows each entry here that it has not read
        return False

    async def remove_letter(self, entry_id: EntryId, *, task_id: TaskId, version: Version) -> bool:
        return self._state.version(task_id) == version and self._state.letters.remove(entry_id)

    async def introduce(self, worker: WorkerId) -> bool:
        del worker  # a heartbeat and its worker's name are one act here
        return False

    async def offer(self, receipt: Receipt) -> bool:
        stream = self._state.stream(receipt.queue, receipt.priority)
        if receipt.entry_id not in stream.entries or receipt.entry_id in stream.held:
            return False
        since = self._state.clock.monotonic() - HANDED_BACK
        stream.hold(receipt.entry_id, owner=_OFFERED, idle_since=since)
        return True
