"""Taking entries from the ready queues, keeping them, and giving them back."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from dtq.adapters.memory.state import EVENTS, State
from dtq.adapters.memory.streams import BANDS, Stream, position
from dtq.domain.entry import malformed_fields
from dtq.domain.events import EventType, task_event
from dtq.domain.task import NO_VERSION, EntryId, QueueName, Receipt, Task, Version, WorkerId
from dtq.ports.broker import Delivery, Fetch, HeldLease, LeaseReport, UnreadableEntry

HANDED_BACK: Final = timedelta(days=30).total_seconds()
"""How long an entry that was handed back seems to have been idle: longer than any visibility timeout."""


def fetch(
    state: State,
    queue: QueueName,
    *,
    worker: WorkerId,
    limit: int,
    reap_idle: timedelta | None,
    held: Collection[Receipt],
) -> Fetch:
    """Take entries, highest priority first, as the port promises."""
    now = state.clock.now()
    if queue in state.paused:
        return Fetch(deliveries=(), now=now, paused=True)
    found = state.queue(queue)
    found.consumers.add(worker)
    deliveries: list[Delivery] = []
    unreadable: list[UnreadableEntry] = []
    faults: list[str] = []
    for priority in BANDS:
        if (queue, priority) in state.faults.spoiled:
            faults.append(f"p{priority}: the stream is spoiled")
            continue
        stream = found.bands[priority]
        mine = [one.entry_id for one in held if one.queue == queue and one.priority == priority]
        taken = _take(
            state,
            stream,
            worker=worker,
            limit=limit - len(deliveries) - len(unreadable),
            reap_idle=reap_idle,
            held=sorted(mine, key=position),
        )
        for entry_id in taken:
            receipt, fields = Receipt(queue, priority, entry_id), stream.entries[entry_id]
            if fields.get("task_id", "") in state.faults.garbled:
                unreadable.append(UnreadableEntry(receipt, "the record is garbled"))
            else:
                deliveries.append(state.delivery(receipt, fields))
    return Fetch(deliveries=tuple(deliveries), now=now, faults=tuple(faults), unreadable=tuple(unreadable))


def _take(
    state: State,
    stream: Stream,
    *,
    worker: WorkerId,
    limit: int,
    reap_idle: timedelta | None,
    held: Collection[EntryId],
) -> list[EntryId]:
    now = state.clock.monotonic()
    taken = [entry_id for entry_id in held if stream.is_owner(worker, entry_id=entry_id)][:limit]
    for entry_id in taken:
        stream.hold(entry_id, owner=worker, idle_since=now)
    if reap_idle is not None:
        idle = reap_idle.total_seconds()
        room = limit - len(taken)
        taken += stream.reap(owner=worker, now=now, idle=idle, limit=room)
    return taken + stream.read(owner=worker, now=now, limit=limit - len(taken))


def read_one_each(state: State, queue: QueueName, *, worker: WorkerId) -> list[Receipt]:
    """Take the oldest fresh entry of every priority."""
    found = state.queue(queue)
    found.consumers.add(worker)
    now = state.clock.monotonic()
    return [
        Receipt(queue, priority, entry_id)
        for priority, stream in found.bands.items()
        if (queue, priority) not in state.faults.spoiled
        for entry_id in stream.read(owner=worker, now=now, limit=1)
    ]


def release(state: State, receipts: Collection[Receipt], *, worker: WorkerId) -> int:
    """Let what *worker* owns of *receipts* look long abandoned."""
    since = state.clock.monotonic() - HANDED_BACK
    mine = list(_owned_streams(state, receipts, worker=worker))
    for stream, entry_id in mine:
        stream.hold(entry_id, owner=worker, idle_since=since)
    return len(mine)


def _owned_streams(
    state: State, receipts: Collection[Receipt], *, worker: WorkerId
) -> Iterator[tuple[Stream, EntryId]]:
    for receipt in receipts:
        stream = state.stream(receipt.queue, receipt.priority)
        if stream.is_owner(worker, entry_id=receipt.entry_id):
            yield stream, receipt.entry_id


def extend(state: State, lease: HeldLease, *, worker: WorkerId) -> LeaseReport:
    """Let an entry look new while its task names the lease."""
    task = state.task(lease.task_id)
    if task is None or task.lease != lease.lease:
        return LeaseReport(lease=lease.lease, kept=False)
    stream = state.stream(lease.receipt.queue, lease.receipt.priority)
    if lease.receipt.entry_id in stream.entries:
        stream.hold(lease.receipt.entry_id, owner=worker, idle_since=state.clock.monotonic())
    return LeaseReport(lease=lease.lease, kept=True, cancel_requested=task.cancel_requested)


def acknowledge(state: State, delivery: Delivery, *, worker: WorkerId, absorbed: bool, token: Version) -> bool:
    """Remove an entry unless its task has moved since it was judged."""
    task, receipt = delivery.task, delivery.receipt
    stored = state.delivery(receipt, delivery.fields).task
    if _version(stored) != _version(task):
        return False
    removed = state.stream(receipt.queue, receipt.priority).remove(receipt.entry_id)
    if removed and absorbed and task is not None:
        at = state.clock.now()
        event = task_event(task, kind=EventType.DUPLICATE_ABSORBED, event_id=token, at=at, worker=worker)
        state.events.send(EVENTS, event)
    return removed


def _version(task: Task | None) -> Version:
    return NO_VERSION if task is None else task.version


def bury(state: State, delivery: Delivery, *, at: datetime) -> bool:
    """Move an entry that names no task to the dead letters."""
    receipt = delivery.receipt
    stream = state.stream(receipt.queue, receipt.priority)
    if receipt.entry_id not in stream.entries:
        return False
    state.add_letter(malformed_fields(delivery.fields, receipt=receipt, at=at))
    return stream.remove(receipt.entry_id)
