"""Changes made real, in the order that leaves every half of one harmless."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from dtq.adapters.memory.faults import GARBLED, Stopped
from dtq.adapters.memory.state import EVENTS, Record, Slot, State, bare
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change, Requirement
from dtq.domain.entry import dead_letter_fields, entry_fields
from dtq.domain.idempotency import IdempotencyRecord, record_of
from dtq.domain.retention import mark_lifetime, record_lifetime, task_lifetime
from dtq.domain.status import Place
from dtq.domain.task import NO_VERSION, Task, place_of
from dtq.ports.answers import (
    TOKENS_REMEMBERED,
    Admission,
    Already,
    Applied,
    Broken,
    CommitAnswer,
    Conflict,
    CreateAnswer,
    Full,
    KeyTaken,
    Refused,
)

_ENTRY_PLACES: Final = frozenset({Place.READY, Place.HELD})


def create(state: State, admission: Admission, *, limits: BrokerLimits) -> CreateAnswer:
    """Bring one task into being, unless the port's reasons speak against it, in the port's order."""
    change = admission.change
    record = state.records.get(change.after.task_id)
    if record is not None:
        known = change.after.version in record.tokens
        return Already(bare(record.task)) if known else Conflict(bare(record.task))
    return _key_taken(state, admission) or _full(state, change.after, limits=limits) or _make(state, change)


def commit(state: State, change: Change) -> CommitAnswer:
    """Make one change real if the stored task is the one it was decided on and its requirements hold."""
    record = state.records.get(change.after.task_id)
    task = None if record is None else bare(record.task)
    if record is not None and change.after.version in record.tokens:
        return Already(task)
    if state.version(change.after.task_id) != (change.stored.version if change.stored else NO_VERSION):
        return Conflict(task)
    for requirement in change.requires:
        if not _is_met(state, change, requirement):
            return Refused(requirement=requirement, task=task)
    return _make(state, change)


def commit_all(state: State, changes: Sequence[Change]) -> list[CommitAnswer]:
    """Commit one after the other; where memory is full, a new life is refused before anything is written."""
    if any(change.revives for change in changes):
        state.faults.before_admission()
    return [commit(state, change) for change in changes]


def key_text(record: IdempotencyRecord) -> str:
    """Write an idempotency record as it is stored."""
    return msgspec.json.encode(record).decode()


def key_record(text: str) -> IdempotencyRecord | None:
    """Read an idempotency record; None where it is garbled."""
    return None if text == GARBLED else msgspec.json.decode(text, type=IdempotencyRecord)


def owns_key(state: State, task: Task) -> bool:
    """Tell whether the idempotency record of the task's key names this task."""
    text = None if task.idempotency_key is None else state.keys.get((task.queue, task.idempotency_key))
    record = None if text is None else key_record(text)
    return record is not None and record.task_id == task.task_id


def _key_taken(state: State, admission: Admission) -> KeyTaken | None:
    task = admission.change.after
    text = None if task.idempotency_key is None else state.keys.get((task.queue, task.idempotency_key))
    if text is None or text == admission.replaces:
        return None
    return KeyTaken(record=key_record(text), text=text)


def _full(state: State, task: Task, *, limits: BrokerLimits) -> Full | None:
    queue = state.queues.get(task.queue)
    depth = 0 if queue is None else queue.depth
    if depth >= limits.queue_depth:
        return Full(reason="queue_full", value=depth, limit=limits.queue_depth)
    if place_of(task) is Place.SCHEDULE and len(state.schedule) >= limits.scheduled:
        return Full(reason="schedule_full", value=len(state.schedule), limit=limits.scheduled)
    if task.queue not in state.known and len(state.known) >= limits.queues:
        return Full(reason="too_many_queues", value=len(state.known), limit=limits.queues)
    return None


def _is_met(state: State, change: Change, requirement: Requirement) -> bool:
    task = change.before or change.after
    stream = state.stream(task.queue, task.priority)
    match requirement:
        case Requirement.HELD:
            holding = None if task.entry_id is None else stream.held.get(task.entry_id)
            return holding is not None and holding.owner == change.holder
        case Requirement.UNPAUSED:
            return task.queue not in state.paused
        case Requirement.IN_DEAD_LETTERS:
            return task.dlq_entry_id in state.letters.entries
        case Requirement.UNDELIVERED:
            return task.entry_id not in stream.held
        case Requirement.HOMELESS:
            return not state.holds(task)


def _make(state: State, change: Change) -> Applied | Broken:
    stored = state.task(change.after.task_id)
    payload = change.after.payload
    if payload is None:
        payload = None if stored is None else stored.payload
    if payload is None:
        raise ValueError(f"{change.after.task_id}: neither the change nor the store has a payload")
    try:
        after = _enter_new_home(state, change, payload=payload)
        detached = not _write_key(state, change)
        _write_record(state, change, replace(after, payload=payload))
        _tell(state, change)
        _leave_old_home(state, change, after)
    except Stopped:
        return Broken("stopped half-way")
    return Applied(after, detached=detached)


def _enter_new_home(state: State, change: Change, *, payload: str) -> Task:
    after, place = change.after, place_of(change.after)
    if place in _ENTRY_PLACES and after.entry_id is None:
        state.faults.before_write()
        fields = entry_fields(after) | {"payload": payload}
        after = replace(after, entry_id=state.add_entry(after.queue, after.priority, fields))
        state.known.add(after.queue)
    if place is Place.SCHEDULE:
        state.faults.before_write()
        state.schedule[after.task_id] = Slot(queue=after.queue, due=after.available_at)
        state.known.add(after.queue)
    if place is Place.DEAD and after.dlq_entry_id is None:
        state.faults.before_write()
        after = replace(after, dlq_entry_id=state.add_letter(dead_letter_fields(after) | {"payload": payload}))
    if change.marks_cancelled:
        state.faults.before_write()
        lifetime = mark_lifetime(state.options.retention)
        state.marks.put(after.task_id, True, lifetime=lifetime)  # noqa: FBT003 - a set with lifetimes
    if change.result is not None:
        state.faults.before_write()
        state.results.put(after.task_id, change.result, lifetime=state.options.retention.result)
    return after


def _write_key(state: State, change: Change) -> bool:
    """Write the record of the task's key; tell whether that was due, or the task has none."""
    task, record = change.after, record_of(change)
    if record is None or task.idempotency_key is None:
        return True
    key = (task.queue, task.idempotency_key)
    is_missing = state.keys.get(key) is None
    may_make = change.starts_life or (change.may_bind_key and is_missing)
    if not may_make and not owns_key(state, task):
        return False
    state.faults.before_write()
    lifetime = record_lifetime(task, at=change.at, retention=state.options.retention)
    state.keys.put(key, key_text(record), lifetime=lifetime)
    return True


def _write_record(state: State, change: Change, task: Task) -> None:
    state.faults.before_write()
    before = state.records.get(task.task_id)
    tokens = (*(before.tokens if before else ()), task.version)[-TOKENS_REMEMBERED:]
    lifetime = task_lifetime(task, at=change.at, retention=state.options.retention)
    state.records.put(task.task_id, Record(task, tokens), lifetime=lifetime)
    if change.starts_life:
        state.faults.before_write()
        state.recent.append(task.task_id)


def _tell(state: State, change: Change) -> None:
    if change.audit is not None:
        state.faults.before_write()
        state.audit.append(change.audit)
    if change.event is not None:
        state.faults.before_write()
        state.events.send(EVENTS, change.event)


def _leave_old_home(state: State, change: Change, after: Task) -> None:
    before = change.before
    if before is None:
        return
    if place_of(before) is Place.SCHEDULE and place_of(after) is not Place.SCHEDULE:
        state.faults.before_write()
        state.schedule.pop(before.task_id, None)
    if before.entry_id is not None and before.receipt != after.receipt:
        state.faults.before_write()
        state.stream(before.queue, before.priority).remove(before.entry_id)
    if before.dlq_entry_id is not None and before.dlq_entry_id != after.dlq_entry_id:
        state.faults.before_write()
        state.letters.remove(before.dlq_entry_id)
