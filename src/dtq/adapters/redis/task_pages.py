"""Tasks read many at a time: their records, whether their places hold them, and what stands under their keys."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from dtq.adapters.redis.client import Rejected, Reply
from dtq.adapters.redis.keys import GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.looks import is_missing, last_delivered, record_of, snapshot, why
from dtq.adapters.redis.peeking import Range, peek
from dtq.adapters.redis.scripts import LACKING
from dtq.adapters.redis.store import is_of_another_type, sound
from dtq.adapters.redis.task_looks import (
    at_keys_of_others,
    completed,
    may_be_trimmed,
    oldest_letter,
    spoiled,
    task_fact,
    under_key,
)
from dtq.adapters.redis.trips import looked_at, through
from dtq.domain.facts import Denied, Fact, Record, TaskFact
from dtq.domain.status import Place
from dtq.domain.task import EntryId, Task, TaskId, place_of

LOOKED_AT: Final = 40
"""How many entries one script looks at: fewer than a sweep takes, since a walk through everything is in no hurry."""

_REMEMBERED: Final = 200_000
_TRIMS: Final = "dead letters older than the oldest that is left"


class _Standing(Struct, frozen=True):
    """What the entry says that a record names: of which task it is, and whether it has a payload."""

    task_id: str = ""
    has_payload: bool = True

    def is_of_another(self, task: Task) -> bool:
        """Tell whether it names a task, and that is another one."""
        return self.task_id not in {"", task.task_id}


_UNREAD: Final = _Standing()


class TaskPages:
    """Reads tasks, and remembers which entries are their own; ``untold`` is what of their places may not be asked."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.untold: Denied | None = None
        self._own_entries: set[tuple[str, EntryId]] = set()

    def is_own(self, stream: str, entry_id: EntryId) -> bool:
        """Tell whether an entry was read as that of the task that it names."""
        return (stream, entry_id) in self._own_entries

    async def all_of(self, ids: Sequence[TaskId], *, there: set[str], tells_types: bool) -> list[Fact]:
        """Read the tasks of these ids; *there* names what is stored, as far as that was asked.

        Where a finding of its own tells of keys of another type none is made here.
        """
        tasks: list[Task] = []
        facts: list[Fact] = []
        replies = await through(self._link, [snapshot(self._link.keys, task_id) for task_id in ids])
        for task_id, reply in zip(ids, replies, strict=True):
            record = record_of(reply, task_id)
            fault = None if record.task else spoiled(task_id, record, exists=self._link.keys.task(task_id) in there)
            if is_of_another_type(reply) and tells_types:
                # told of by its name
                continue
            tasks += [record.task] if record.task else []
            facts += [fault] if fault else []
        return [*facts, *await self._places(tasks)]

    async def _places(self, tasks: Sequence[Task]) -> Sequence[Fact]:
        keys = self._link.keys
        kept = await through(self._link, [under_key(keys, task) for task in tasks])
        lacking = await self._lacking([task.task_id for task in tasks])
        waiting = [task for task in tasks if place_of(task) is Place.SCHEDULE]
        due = await through(self._link, [("ZSCORE", keys.schedule, task.task_id) for task in waiting])
        claimed = await through(self._link, [("ZSCORE", keys.claimed, task.task_id) for task in waiting])
        facts = [
            TaskFact(task_id=task.task_id, record=Record(task), scheduled=not (one is other is None))
            for task, one, other in zip(waiting, due, claimed, strict=True)
        ]
        facts += await self._in_streams([task for task in tasks if place_of(task) in {Place.READY, Place.HELD}])
        facts += await self._dead([task for task in tasks if place_of(task) is Place.DEAD])
        others = await looked_at(self._link, at_keys_of_others(keys, tasks=tasks, kept=kept))
        return completed(facts, tasks=tasks, kept=kept, lacking=lacking, others=others)

    async def _lacking(self, ids: Sequence[TaskId]) -> set[TaskId]:
        """Return those whose records have no payload; as many at a time as entries, since the server reads them."""
        lacking: set[TaskId] = set()
        for first in range(0, len(ids), LOOKED_AT):
            part = ids[first : first + LOOKED_AT]
            numbers = await self._link.scripts.run(LACKING, keys=[*map(self._link.keys.task, part)], arguments=())
            lacking |= {part[number - 1] for number in numbers}
        return lacking

    async def _in_streams(self, tasks: Sequence[Task]) -> Sequence[TaskFact]:
        keys = self._link.keys
        homes = [keys.stream(task.queue, task.priority) for task in tasks]
        streams = sorted(set(homes))
        groups = await through(self._link, [("XINFO", "GROUPS", stream) for stream in streams])
        delivered = dict(zip(streams, map(last_delivered, groups), strict=True))
        ids = [task.entry_id or "0-1" for task in tasks]
        pending = await self._pending(homes, ids, read={stream for stream, last in delivered.items() if last})
        standing = await self._standing([Range(stream, one, one) for stream, one in zip(homes, ids, strict=True)])
        self._remember({(homes[number], EntryId(ids[number])) for number in standing})
        return [
            task_fact(
                task,
                entered=number in standing,
                hollow=not standing.get(number, _UNREAD).has_payload,
                mistaken=standing.get(number, _UNREAD).is_of_another(task),
                pending=pending[number],
                delivered=delivered[homes[number]],
            )
            for number, task in enumerate(tasks)
        ]

    async def _pending(self, homes: Sequence[str], ids: Sequence[str], *, read: set[str]) -> Sequence[Reply]:
        """Ask who owns entries; of a stream without a group nobody does, and its refusal would cost a connection."""
        asked = [(stream, one) for stream, one in zip(homes, ids, strict=True) if stream in read]
        owners = iter(await through(self._link, [("XPENDING", stream, GROUP, one, one, "1") for stream, one in asked]))
        return [next(owners) if stream in read else () for stream in homes]

    def _remember(self, entries: set[tuple[str, EntryId]]) -> None:
        """Keep in mind which entries are their tasks' own: most of them are, and their records are read already."""
        if len(self._own_entries) < _REMEMBERED:
            self._own_entries |= entries

    async def _dead(self, tasks: Sequence[Task]) -> Sequence[TaskFact]:
        if not tasks:
            return ()
        first, state = await self._link.client.pipeline(oldest_letter(self._link.keys))
        if isinstance(state, Rejected) and not is_missing(state):
            self.untold = Denied(_TRIMS, why(state))
        ids = [task.dlq_entry_id or "0-1" for task in tasks]
        standing = await self._standing([Range(self._link.keys.dead_letters, one, one) for one in ids])
        limit = self._link.options.dead_letter_limit
        return [
            TaskFact(
                task_id=task.task_id,
                record=Record(task),
                lettered=number in standing,
                mistaken=standing.get(number, _UNREAD).is_of_another(task),
                trimmed=may_be_trimmed(task, first, state, limit=limit),
            )
            for number, task in enumerate(tasks)
        ]

    async def _standing(self, ranges: Sequence[Range]) -> Mapping[int, _Standing]:
        """Return the numbers of those ranges of one entry that hold it, and what that says."""
        streams = await sound(self._link, sorted({one.stream for one in ranges}))
        # what cannot be read is told of as that, and not as empty
        found = {number: _UNREAD for number, one in enumerate(ranges) if one.stream not in streams}
        numbers = [number for number, one in enumerate(ranges) if one.stream in streams]
        for first in range(0, len(numbers), LOOKED_AT):
            part = numbers[first : first + LOOKED_AT]
            seen = await peek(self._link, [ranges[one] for one in part], limit=len(part), records=False)
            found |= {part[entry.number]: _Standing(entry.task_id, entry.has_payload) for entry in seen}
        return found
