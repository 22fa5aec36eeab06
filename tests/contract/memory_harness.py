"""The memory adapter on a clock that is moved by hand."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from msgspec.structs import replace

from dtq.adapters.memory import ManualClock, State, backend_of
from dtq.adapters.memory.faults import GARBLED
from dtq.adapters.memory.state import MAX_AUDIT, MAX_RECENT
from dtq.domain.entry import entry_fields
from dtq.domain.status import Place
from dtq.domain.task import QueueName, Receipt, TaskId
from dtq.ports.backend import Backend, BackendOptions


class MemoryHarness:
    """Reaches behind the ports into the state they stand on."""

    def __init__(self, *, options: BackendOptions) -> None:
        self._clock = ManualClock()
        self._state = State(self._clock, options=options)
        self._backend = backend_of(self._state)

    @property
    def backend(self) -> Backend:
        return self._backend

    @property
    def options(self) -> BackendOptions:
        return self._state.options

    async def advance(self, by: timedelta) -> None:
        await self._clock.advance(by)

    async def rewind(self) -> None:
        now = self._clock.monotonic()
        for queue in self._state.queues.values():
            for stream in queue.bands.values():
                stream.held = {entry_id: replace(one, idle_since=now) for entry_id, one in stream.held.items()}

    async def census(self) -> Mapping[Place, set[TaskId]]:
        streams = [stream for queue in self._state.queues.values() for stream in queue.bands.values()]
        return {
            Place.SCHEDULE: set(self._state.schedule),
            Place.READY: {_named(stream.entries[entry_id]) for stream in streams for entry_id in stream.fresh},
            Place.HELD: {_named(stream.entries[entry_id]) for stream in streams for entry_id in stream.held},
            Place.DEAD: {_named(fields) for fields in self._state.letters.entries.values()},
            Place.NOWHERE: set(),
        }

    async def duplicate(self, task_id: TaskId) -> Receipt:
        task = self._state.task(task_id)
        if task is None:
            raise ValueError(f"no task {task_id} to duplicate")
        fields = entry_fields(task) | {"payload": task.payload or "{}"}
        return await self.forge(task.queue, priority=task.priority, fields=fields)

    async def forge(self, queue: QueueName, *, priority: int, fields: Mapping[str, str]) -> Receipt:
        return Receipt(queue, priority, self._state.add_entry(queue, priority, fields))

    async def evict(self, task_id: TaskId) -> None:
        self._state.records.remove(task_id)

    async def orphan(self, task_id: TaskId) -> None:
        self._state.schedule.pop(task_id, None)
        task = self._state.task(task_id)
        if task is not None and task.entry_id is not None:
            self._state.stream(task.queue, task.priority).remove(task.entry_id)
        if task is not None and task.dlq_entry_id is not None:
            self._state.letters.remove(task.dlq_entry_id)

    async def unname(self, task_id: TaskId) -> None:
        record = self._state.records.get(task_id)
        assert record is not None
        unnamed = replace(record, task=replace(record.task, dlq_entry_id=None))
        self._state.records.put(task_id, unnamed, lifetime=timedelta(days=1))

    async def strip(self, task_id: TaskId, *, leaves: str | None = None) -> None:
        record = self._state.records.get(task_id)
        assert record is not None
        stripped = replace(record, task=replace(record.task, payload=leaves))
        self._state.records.put(task_id, stripped, lifetime=timedelta(days=1))

    async def mistime(self, task_id: TaskId, *, at: datetime) -> None:
        slot = self._state.schedule[task_id]
        moved = {"due": at} if slot.claimed_at is None else {"claimed_at": at}
        self._state.schedule[task_id] = replace(slot, **moved)

    async def lose_groups(self, queue: QueueName) -> None:
        for stream in self._state.queue(queue).bands.values():
            stream.forget_owners()

    async def disown(self, task_id: TaskId) -> None:
        task = self._state.task(task_id)
        if task is not None and task.entry_id is not None:
            self._state.stream(task.queue, task.priority).held.pop(task.entry_id, None)

    async def spoil(self, queue: QueueName, *, priority: int) -> None:
        self._state.faults.spoiled.add((queue, priority))

    async def garble(self, task_id: TaskId) -> None:
        self._state.faults.garbled.add(task_id)

    async def garble_key(self, queue: QueueName, *, key: str) -> None:
        self._state.keys.put((queue, key), GARBLED, lifetime=timedelta(days=1))

    async def lose_reply(self) -> None:
        self._state.faults.loses_next_reply = True

    async def stop_after(self, writes: int) -> None:
        self._state.faults.writes_left = writes

    async def fill_memory(self) -> None:
        self._state.faults.memory_is_full = True

    async def free_memory(self) -> None:
        self._state.faults.memory_is_full = False

    async def unbounded(self) -> Sequence[str]:
        state = self._state
        bounds = {
            "dead letters": (len(state.letters.entries), state.options.dead_letter_limit),
            "audit log": (len(state.audit), MAX_AUDIT),
            "recent tasks": (len(state.recent), MAX_RECENT),
            "waiting readers": (state.waiting, 0),
            "listeners": (state.events.listeners + state.signals.listeners, 0),
        }
        return [name for name, (size, bound) in bounds.items() if size > bound]


@asynccontextmanager
async def open_harness(*, options: BackendOptions) -> AsyncIterator[MemoryHarness]:
    yield MemoryHarness(options=options)


def _named(fields: Mapping[str, str]) -> TaskId:
    return TaskId(fields.get("task_id", ""))
