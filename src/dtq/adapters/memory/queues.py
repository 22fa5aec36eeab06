"""Queues as a whole, and the sweeps over them, in memory."""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from dtq.adapters.memory.commit import owns_key
from dtq.adapters.memory.state import EVENTS, State, bare
from dtq.adapters.memory.streams import Stream
from dtq.domain.audit import AuditEntry
from dtq.domain.entry import milliseconds, usable_task_id
from dtq.domain.events import Event
from dtq.domain.retention import record_lifetime, task_lifetime
from dtq.domain.task import EntryId, QueueName, Receipt, Task, TaskId
from dtq.ports.queues import QueueStats


class MemoryQueues:
    """Queues in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def register(self, queue: QueueName) -> None:
        self._state.known.add(queue)

    async def names(self) -> Sequence[QueueName]:
        return sorted(self._state.known)

    async def stats(self, queue: QueueName) -> QueueStats:
        found = self._state.queues.get(queue)
        return QueueStats(
            queue=queue,
            depth=0 if found is None else found.depth,
            pending=0 if found is None else found.held,
            paused=queue in self._state.paused,
            retry_scheduled=self._state.scheduled_of(queue),
        )

    async def pause(self, queue: QueueName, *, audit: AuditEntry, event: Event) -> None:
        self._state.known.add(queue)
        self._state.paused.add(queue)
        self._state.audit.append(audit)
        self._state.events.send(EVENTS, event)

    async def resume(self, queue: QueueName, *, audit: AuditEntry, event: Event) -> None:
        self._state.paused.discard(queue)
        self._state.audit.append(audit)
        self._state.events.send(EVENTS, event)

    async def undelivered(self, queue: QueueName, *, limit: int) -> Sequence[Task | Receipt]:
        found: list[Task | Receipt] = []
        for priority, stream in self._state.queue(queue).bands.items():
            for entry_id in stream.fresh:
                receipt = Receipt(queue, priority, entry_id)
                found.append(bare(self._state.live_task_of(receipt, stream.entries[entry_id])) or receipt)
                if len(found) == limit:
                    return found
        return found

    async def drop(self, receipts: Collection[Receipt]) -> int:
        dropped = 0
        for receipt in receipts:
            stream = self._state.stream(receipt.queue, receipt.priority)
            is_fresh = receipt.entry_id in stream.fresh
            if is_fresh and self._state.live_task_of(receipt, stream.entries[receipt.entry_id]) is None:
                dropped += stream.remove(receipt.entry_id)
        return dropped


class MemoryUpkeep:
    """Sweeps in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def strays(self, cursor: str, *, limit: int) -> tuple[str, Sequence[Task]]:
        looked_at = heapq.nsmallest(limit, (task_id for task_id in self._state.records if task_id > cursor))
        tasks = [task for task in map(self._state.task, looked_at) if task is not None]
        strays = [task for task in tasks if not task.is_terminal and not self._state.holds(task)]
        end = "" if len(looked_at) < limit else looked_at[-1]
        return end, [task for task in map(bare, strays) if task is not None]

    async def keep_alive(
        self, queue: QueueName, *, cursor: str, waiting_since: datetime, limit: int
    ) -> tuple[str, int]:
        bands, looked_at = self._state.queue(queue).bands, dict[tuple[int, int, int], Task | None]()
        for position in heapq.nsmallest(limit, _positions(bands, cursor=cursor, end=milliseconds(waiting_since))):
            receipt = Receipt(queue, -position[0], EntryId(f"{position[1]}-{position[2]}"))
            entry = bands[receipt.priority].entries[receipt.entry_id]
            looked_at[position] = self._state.live_task_of(receipt, entry)
        living = [task for task in looked_at.values() if task is not None]
        for task in living:
            self._renew(task)
        following = "" if len(looked_at) < limit else " ".join(map(str, max(looked_at)))
        return following, len(living)

    def _renew(self, task: Task) -> None:
        at, retention = self._state.clock.now(), self._state.options.retention
        self._state.records.renew(task.task_id, lifetime=task_lifetime(task, at=at, retention=retention))
        if task.idempotency_key is not None and owns_key(self._state, task):
            lifetime = record_lifetime(task, at=at, retention=retention)
            self._state.keys.renew((task.queue, task.idempotency_key), lifetime=lifetime)

    async def drop_consumers(self, queue: QueueName, *, alive: Collection[str]) -> int:
        found = self._state.queue(queue)
        owners = {holding.owner for stream in found.bands.values() for holding in stream.held.values()}
        idle = {name for name in found.consumers if name not in alive and name not in owners}
        found.consumers -= idle
        return len(idle)

    async def retire(self, queue: QueueName) -> bool:
        state = self._state
        in_use = queue in state.paused or state.queue(queue).depth or state.scheduled_of(queue)
        if in_use or queue not in state.known:
            return False
        state.known.remove(queue)
        del state.queues[queue]
        return True

    async def drop_marks(self, *, limit: int) -> int:
        entered = {
            TaskId(str(usable_task_id(fields)))
            for queue in self._state.queues.values()
            for stream in queue.bands.values()
            for fields in stream.entries.values()
        }
        idle = [task_id for task_id in self._state.marks if task_id not in entered][:limit]
        return sum(self._state.marks.remove(task_id) for task_id in idle)


def _positions(bands: Mapping[int, Stream], *, cursor: str, end: int) -> Iterator[tuple[int, int, int]]:
    """Name where the entries behind a cursor stand that are older than *end*, in the order of a sweep."""
    behind = tuple(map(int, cursor.split()))
    for priority, stream in bands.items():
        for entry_id in stream.entries:
            at, _, number = entry_id.partition("-")
            position = (-priority, int(at), int(number))
            if position > behind and position[1] < end:
                yield position
