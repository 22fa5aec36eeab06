"""The dead letters."""

from collections.abc import Mapping, Sequence

from dtq.adapters.redis.codec import PAYLOAD, SNAPSHOT
from dtq.adapters.redis.envelope import FIRST_REPLY, Envelope
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.peeking import Range, walk
from dtq.adapters.redis.store import load, read_many, readable
from dtq.adapters.redis.wire import pairs
from dtq.domain.audit import AuditEntry
from dtq.domain.entry import revive
from dtq.domain.task import EntryId, Task, TaskId
from dtq.ports.dead_letters import DeadLetter

CHUNK = 20
"""How many dead letters are read in one trip, payloads included."""


class RedisDeadLetters:
    """Dead letters on Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, task_id: TaskId) -> DeadLetter | None:
        task = await load(self._link, task_id)
        entry_id = await self._found(task_id) if task is None else task.dlq_entry_id
        if entry_id is None:
            return None
        letters = await self._read(entry_id, entry_id, limit=1)
        return _letter(*letters[0], task) if letters else None

    async def recent(self, *, limit: int) -> Sequence[DeadLetter]:
        letters: list[DeadLetter] = []
        begin = "+"
        while len(letters) < limit:
            chunk = await self._read(begin, "-", limit=CHUNK)
            letters += await self._that_count(chunk)
            if len(chunk) < CHUNK:
                break
            begin = f"({chunk[-1][0]}"
        return letters[:limit]

    async def count(self) -> int:
        return int(await self._link.client.call("XLEN", self._link.keys.dead_letters))

    async def purge(self, *, audit: AuditEntry) -> int:
        def empty(envelope: Envelope) -> None:
            trim = (("XTRIM", envelope.key(self._link.keys.dead_letters), "MAXLEN", "0"),)
            envelope.add(steps=[trim, self._link.writer(envelope).audit(audit, count=FIRST_REPLY)])

        return int(await self._link.act(empty) or 0)

    async def _tasks(self, ids: Sequence[TaskId]) -> Sequence[Task | None]:
        found = await read_many(self._link, ids, (*SNAPSHOT, PAYLOAD))
        return [
            readable(values[:-1], task_id=task_id, payload=values[-1])
            for task_id, values in zip(ids, found, strict=True)
        ]

    async def _found(self, task_id: TaskId) -> EntryId | None:
        """Look for a dead letter whose task's record is gone, newest first."""
        whole = Range(self._link.keys.dead_letters, "+", "-")
        async for chunk in walk(self._link, whole, records=False, direction="XREVRANGE"):
            for entry in chunk:
                if entry.task_id == task_id:
                    return entry.entry_id
        return None

    async def _read(self, begin: str, end: str, *, limit: int) -> Sequence[tuple[EntryId, Mapping[str, str]]]:
        found = await self._link.client.call("XREVRANGE", self._link.keys.dead_letters, begin, end, "COUNT", limit)
        return [(EntryId(entry_id), pairs(fields)) for entry_id, fields in found]

    async def _that_count(self, letters: Sequence[tuple[EntryId, Mapping[str, str]]]) -> Sequence[DeadLetter]:
        tasks = await self._tasks([TaskId(fields.get("task_id", "")) for _, fields in letters])
        read = [_letter(*letter, task) for letter, task in zip(letters, tasks, strict=True)]
        return [letter for letter in read if letter is not None]


def _letter(entry_id: EntryId, fields: Mapping[str, str], task: Task | None) -> DeadLetter | None:
    """Read a dead letter; None where its task's record names another, or none."""
    if task is None:
        return DeadLetter(entry_id=entry_id, fields=fields, task=revive(fields, dlq_entry_id=entry_id))
    return DeadLetter(entry_id=entry_id, fields=fields, task=task) if task.dlq_entry_id == entry_id else None
