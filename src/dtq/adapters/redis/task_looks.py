"""How a task and what its record says of its place are read."""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from dtq.adapters.redis.client import Rejected, Reply
from dtq.adapters.redis.codec import PAYLOAD
from dtq.adapters.redis.keys import GROUP, Keyspace
from dtq.adapters.redis.looks import Look, at_key, is_missing, last_delivered, record_of, snapshot
from dtq.adapters.redis.store import is_of_another_type
from dtq.adapters.redis.wire import pairs, read_record
from dtq.domain.facts import Fact, KeyFact, Record, TaskFact
from dtq.domain.status import Place
from dtq.domain.task import EntryId, Task, TaskId, WorkerId, place_of

_IN_STREAMS: Final = frozenset({Place.READY, Place.HELD})


def at_task(keys: Keyspace, fact: TaskFact, *, letter_limit: int) -> Look:
    """Look at a task and at what its record, as it was read before, says of its place."""
    task, record = fact.record.task, keys.task(fact.task_id)
    if task is None:
        return _at_spoiled(keys, fact.task_id)
    stream, owner = keys.stream(task.queue, task.priority), keys.worker(fact.owner or WorkerId("-"))

    def read(replies: Sequence[Reply]) -> Fact | None:
        found, due, claimed, entry, pending, groups, alive, paused, letters, first, state, key, kept, *named = replies
        now = record_of(found, task.task_id).task
        if now is None or now.version != task.version:
            return None
        if place_of(now) in _IN_STREAMS and is_of_another_type(entry):
            return None
        return task_fact(
            now,
            entered=bool(entry),
            hollow=_is_hollow(now, entry),
            mistaken=_is_of_another(now, letters if place_of(now) is Place.DEAD else entry),
            pending=pending,
            delivered=last_delivered(groups),
            owner_lives=alive == 1,
            paused=paused == 1,
            scheduled=not (due is claimed is None),
            lettered=is_of_another_type(letters) or (now.dlq_entry_id is not None and bool(letters)),
            letter=_unnamed(now, letters, fact.letter),
            trimmed=may_be_trimmed(now, first, state, limit=letter_limit),
            unkeyed=key is None,
            key=None if other is None else other.read([key, *named]),
            has_payload=bool(kept),
        )

    touched = [record, keys.schedule, keys.claimed, stream, owner, keys.paused(task.queue), keys.dead_letters]
    letter = task.dlq_entry_id or fact.letter or "0-1"
    # what is stored under the key is asked for in any case; the record that it named is to be of the same moment
    other = None if fact.key is None else at_key(keys, task.queue, fact.key.key, text=fact.key.text)
    touched += [*under_key(keys, task)[1:], *(() if other is None else other.keys)]
    named_too = () if other is None else other.commands[1:]
    commands = [*_asked(keys, task, stream=stream, owner=owner, letter=letter), *named_too]
    return Look([*dict.fromkeys(touched)], commands, read)


def _is_hollow(task: Task, entry: Reply) -> bool:
    """Tell whether a task's entry is there, and without a payload."""
    return place_of(task) in _IN_STREAMS and bool(entry) and not pairs(entry[0][1]).get(PAYLOAD)


def _is_of_another(task: Task, entry: Reply) -> bool:
    """Tell whether the entry, or the dead letter, that a task's record names is there, and names another task."""
    named = pairs(entry[0][1]).get("task_id", "") if isinstance(entry, list) and entry else ""
    return place_of(task) in {*_IN_STREAMS, Place.DEAD} and named not in {"", task.task_id}


def _unnamed(task: Task, letter: Reply, entry_id: EntryId | None) -> EntryId | None:
    """Return the dead letter that is the task's although its record names none, if it is still there."""
    stands = isinstance(letter, list) and bool(letter) and not _is_of_another(task, letter)
    return entry_id if stands and task.dlq_entry_id is None else None


def _asked(keys: Keyspace, task: Task, *, stream: str, owner: str, letter: str) -> Sequence[Sequence[str]]:
    entry_id = task.entry_id or "0-1"
    return [
        snapshot(keys, task.task_id),
        *(("ZSCORE", name, task.task_id) for name in (keys.schedule, keys.claimed)),
        ("XRANGE", stream, entry_id, entry_id),
        ("XPENDING", stream, GROUP, entry_id, entry_id, "1"),
        ("XINFO", "GROUPS", stream),
        ("EXISTS", owner),
        ("EXISTS", keys.paused(task.queue)),
        ("XRANGE", keys.dead_letters, letter, letter),
        *oldest_letter(keys),
        under_key(keys, task),
        ("HGET", keys.task(task.task_id), PAYLOAD),
    ]


def _at_spoiled(keys: Keyspace, task_id: TaskId) -> Look:
    record, waiting = keys.task(task_id), (keys.schedule, keys.claimed)
    commands = [snapshot(keys, task_id), ("EXISTS", record), *(("ZSCORE", name, task_id) for name in waiting)]
    return Look([record, *waiting], commands, lambda replies: _unread(task_id, replies))


def under_key(keys: Keyspace, task: Task) -> Sequence[str]:
    """Return the command that tells what is stored under a task's key; of one without a key, that something is."""
    key = task.idempotency_key
    return ("EXISTS", keys.task(task.task_id)) if key is None else ("GET", keys.idempotency(task.queue, key))


def at_keys_of_others(keys: Keyspace, *, tasks: Sequence[Task], kept: Sequence[Reply]) -> Iterator[Look]:
    """Look, by what was answered to `under_key`, at what stands under the key of a task and does not name it."""
    for task, text in zip(tasks, kept, strict=True):
        named = read_record(text) if isinstance(text, str) else None
        if isinstance(text, str) and (named is None or named.task_id != task.task_id):
            yield at_key(keys, task.queue, task.idempotency_key or "", text=text)


def completed(
    facts: Sequence[TaskFact],
    *,
    tasks: Sequence[Task],
    kept: Sequence[Reply],
    lacking: Collection[TaskId],
    others: Sequence[Fact],
) -> Sequence[TaskFact]:
    """Add to *facts* what was answered, of each of *tasks* in turn, to `under_key`, and to `at_keys_of_others`.

    *lacking* are those whose record has no payload.
    """
    keys_kept = {task.task_id: key for task, key in zip(tasks, kept, strict=True)}
    keyed = {(one.queue, one.key): one for one in others if isinstance(one, KeyFact)}
    by_task = {task.task_id: keyed.get((task.queue, task.idempotency_key or "")) for task in tasks}
    return [
        replace(
            fact,
            unkeyed=keys_kept[fact.task_id] is None,
            has_payload=fact.task_id not in lacking,
            key=by_task[fact.task_id],
        )
        for fact in facts
    ]


def task_fact(
    task: Task,
    *,
    pending: Reply,
    delivered: str,
    key: Fact | None = None,
    letter: EntryId | None = None,
    **places: bool,
) -> TaskFact:
    """Put together what was read of a task."""
    owner, idle = _owner(pending)
    is_unowned = owner is None and place_of(task) in _IN_STREAMS
    is_passed = is_unowned and _is_behind(task.entry_id, delivered)
    is_fresh = is_unowned and bool(delivered) and not is_passed
    fact = TaskFact(task_id=task.task_id, record=Record(task), owner=owner, idle=idle, passed=is_passed, fresh=is_fresh)
    return replace(fact, key=key if isinstance(key, KeyFact) else None, letter=letter, **places)


def _unread(task_id: TaskId, replies: Sequence[Reply]) -> TaskFact | None:
    found, exists, due, claimed = replies
    record = record_of(found, task_id)
    is_scheduled = not (due is claimed is None)
    return None if record.task is not None else spoiled(task_id, record, exists=exists == 1, scheduled=is_scheduled)


def spoiled(task_id: TaskId, record: Record, *, exists: bool, scheduled: bool = False) -> TaskFact | None:
    """Tell of a record that is none of a task; None where there is none at all."""
    if record.is_missing and exists:
        record = Record(fault="version is missing")
    return None if record.is_missing else TaskFact(task_id=task_id, record=record, scheduled=scheduled)


def oldest_letter(keys: Keyspace) -> Sequence[Sequence[str]]:
    """Return the commands that tell which dead letters may have been trimmed."""
    return ("XRANGE", keys.dead_letters, "-", "+", "COUNT", "1"), ("XINFO", "STREAM", keys.dead_letters)


def may_be_trimmed(task: Task, first: Reply, state: Reply, *, limit: int) -> bool:
    """Tell whether the dead letter of *task* may be one of those that made room for later ones."""
    is_older = not isinstance(first, list) or not first or _is_behind(task.dlq_entry_id, first[0][0])
    if isinstance(state, Rejected):
        # a stream that is not there has not been trimmed; what may not be asked may have been
        return is_older and not is_missing(state)
    return is_older and int(pairs(state).get("entries-added", limit + 1)) > limit


def _owner(pending: Reply) -> tuple[WorkerId | None, timedelta]:
    if not isinstance(pending, list) or not pending:
        return None, timedelta()
    _, owner, idle, _ = pending[0]
    return WorkerId(owner), timedelta(milliseconds=int(idle))


def _is_behind(entry_id: EntryId | None, other: str) -> bool:
    """Tell whether an entry is not after another one; '' is before all."""
    return bool(entry_id and other) and position(entry_id or "") <= position(other)


def position(entry_id: str) -> tuple[int, int]:
    """Return what entry ids are ordered by."""
    moment, _, number = entry_id.partition("-")
    return int(moment), int(number or 0)
