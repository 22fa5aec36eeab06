"""The commands that make a change real, in the order that leaves every half of them harmless.

The new home comes first, then the record in one command, then what tells of it, and the old home last: a change that
is cut anywhere leaves its task with at least one home, and a repeat or the next reader clears the rest.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from dtq.adapters.redis.codec import PAYLOAD, changed_fields
from dtq.adapters.redis.envelope import (
    FIRST_REPLY,
    TOKENS,
    Argument,
    Envelope,
    Guard,
    Step,
    stored_field,
)
from dtq.adapters.redis.guards import names_task
from dtq.adapters.redis.keys import GROUP, MAX_AUDIT, MAX_RECENT, Keyspace
from dtq.adapters.redis.wire import audit_fields, flat, json_text
from dtq.domain.audit import AuditEntry
from dtq.domain.change import Change
from dtq.domain.entry import dead_letter_fields, entry_fields, milliseconds
from dtq.domain.events import Event
from dtq.domain.idempotency import record_of
from dtq.domain.retention import mark_lifetime, record_lifetime, task_lifetime
from dtq.domain.status import Place
from dtq.domain.task import EntryId, Receipt, Task, place_of
from dtq.ports.backend import BackendOptions

_MILLISECOND: Final = timedelta(milliseconds=1)
_STORED_PAYLOAD: Final = stored_field(PAYLOAD)


def milliseconds_text(duration: timedelta) -> str:
    """Return a lifetime as the commands want it, at least one millisecond."""
    count = duration // _MILLISECOND
    return str(count) if count > 0 else "1"


class Move:
    """From which place to which a change takes its task, and what it asks for there."""

    __slots__ = ("change", "makes_entry", "makes_letter", "source", "stored", "target")

    def __init__(self, change: Change) -> None:
        after = change.after
        target = place_of(after)
        self.change = change
        self.stored = change.stored
        self.source = place_of(change.before)
        self.target = target
        self.makes_entry = after.entry_id is None and (target is Place.READY or target is Place.HELD)
        self.makes_letter = target is Place.DEAD and after.dlq_entry_id is None

    def made(self, new_id: str) -> Task:
        """Return the task as it is stored, with the id that the broker gave to its new entry, if it asked for one."""
        after = self.change.after
        if self.makes_entry:
            return replace(after, entry_id=EntryId(new_id))
        return replace(after, dlq_entry_id=EntryId(new_id)) if self.makes_letter else after


class Writer:
    """Writes the steps of changes into one envelope."""

    def __init__(self, envelope: Envelope, *, keys: Keyspace, options: BackendOptions) -> None:
        self._envelope = envelope
        self._key = envelope.key
        self._text = envelope.text
        self._keys = keys
        self._options = options

    def steps(self, move: Move) -> list[Step]:
        """Return the commands that make the change of *move* real."""
        payload = self._payload(move)
        return [
            *self._new_home(move, payload),
            *self._key_record(move),
            *self._record(move, payload),
            *self._telling(move),
            *self._old_home(move),
        ]

    def audit(self, entry: AuditEntry, *, count: Argument | None = None) -> Step:
        """Append an audit entry, with its own count or with one that is known only in the step."""
        command = ("XADD", self._key(self._keys.audit), "MAXLEN", "~", str(MAX_AUDIT), "*")
        fields = self._envelope.fields(flat(audit_fields(entry)))
        return ((*command, *fields, *(() if count is None else ("count", count))),)

    def publish(self, event: Event, *, guard: Guard | None = None) -> Step:
        """Publish an event, where *guard* holds."""
        command = ("PUBLISH", self._key(self._keys.events), self._text(json_text(event)))
        return (command,) if guard is None else (command, guard)

    def bury(self, fields: Mapping[str, str], *, payload: Argument | None = None) -> Step:
        """Append a dead letter, with the payload if one is given."""
        limit = str(self._options.dead_letter_limit)
        command = ("XADD", self._key(self._keys.dead_letters), "MAXLEN", "~", limit, "*")
        body = () if payload is None else (PAYLOAD, payload)
        return ((*command, *self._envelope.fields(flat(fields)), *body),)

    def remove(self, receipt: Receipt) -> Iterator[Step]:
        """Delete an entry, then acknowledge it: a pending id without its entry heals itself, the reverse is lost."""
        stream = self._key(self._keys.stream(receipt.queue, receipt.priority))
        entry_id = self._text(receipt.entry_id)
        yield (("XDEL", stream, entry_id),)
        yield (("XACK", stream, GROUP, entry_id),)

    def _new_home(self, move: Move, payload: Argument) -> Iterator[Step]:
        after, result = move.change.after, move.change.result
        if move.makes_entry:
            stream = self._key(self._keys.stream(after.queue, after.priority))
            fields = self._envelope.fields(flat(entry_fields(after)))
            yield (("XADD", stream, "*", *fields, PAYLOAD, payload),)
        if move.target is Place.SCHEDULE:
            due = self._text(str(milliseconds(after.available_at)))
            yield (("ZADD", self._key(self._keys.schedule), due, self._text(after.task_id)),)
        if move.makes_letter:
            yield self.bury(dead_letter_fields(after), payload=payload)
        if result is not None:
            key, lifetime = self._key(self._keys.result(after.task_id)), self._options.retention.result
            yield (("SET", key, self._text(result), "PX", milliseconds_text(lifetime)),)

    def _payload(self, move: Move) -> Argument:
        """Name the payload: copied from the record where there is one, sent once where there is not."""
        if move.stored is not None:
            return _STORED_PAYLOAD
        after = move.change.after
        payload = after.payload
        if payload is None:
            raise ValueError(f"{after.task_id}: neither the change nor the store has a payload")
        return self._text(payload)

    def _key_record(self, move: Move) -> Iterator[Step]:
        change, after = move.change, move.change.after
        record = record_of(change)
        if record is None or after.idempotency_key is None:
            return
        key = self._key(self._keys.idempotency(after.queue, after.idempotency_key))
        lifetime = milliseconds_text(record_lifetime(after, at=change.at, retention=self._options.retention))
        command = ("SET", key, self._text(json_text(record)), "PX", self._text(lifetime))
        if change.starts_life:
            yield (command,)
        else:
            yield (command, names_task(self._envelope, key, after.task_id, or_nothing=change.may_bind_key))

    def _record(self, move: Move, payload: Argument) -> Iterator[Step]:
        change, stored, after = move.change, move.stored, move.change.after
        key = self._key(self._keys.task(after.task_id))
        fields: list[Argument] = [*self._envelope.fields(changed_fields(stored, after)), "tokens", TOKENS]
        if stored is None:
            fields += (PAYLOAD, payload)
        if move.makes_entry:
            fields += ("entry_id", FIRST_REPLY)
        if move.makes_letter:
            fields += ("dlq_entry_id", FIRST_REPLY)
        yield (("HSET", key, *fields),)
        lifetime = task_lifetime(after, at=change.at, retention=self._options.retention)
        yield (("PEXPIRE", key, self._text(milliseconds_text(lifetime))),)

    def _telling(self, move: Move) -> Iterator[Step]:
        change, after = move.change, move.change.after
        if change.starts_life:
            recent = self._key(self._keys.recent)
            made_at = self._text(str(milliseconds(after.created_at)))
            yield (("ZADD", recent, made_at, self._text(after.task_id)),)
            yield (("ZREMRANGEBYRANK", recent, "0", str(-MAX_RECENT - 1)),)
        if move.makes_entry or move.target is Place.SCHEDULE or move.source is Place.SCHEDULE:
            # counts what is scheduled, and so keeps the name of a queue that something waits in
            registry = self._key(self._keys.queues)
            yield (("HINCRBY", registry, self._text(after.queue), str(change.scheduled_delta)),)
        if change.marks_cancelled:
            marks = self._key(self._keys.cancelled)
            yield (("SADD", marks, self._text(after.task_id)),)
            yield (("PEXPIRE", marks, milliseconds_text(mark_lifetime(self._options.retention))),)
        if change.audit is not None:
            yield self.audit(change.audit)
        if change.event is not None:
            yield self.publish(change.event)

    def _old_home(self, move: Move) -> Iterator[Step]:
        before, after = move.change.before, move.change.after
        if before is None:
            return
        if move.source is Place.SCHEDULE and move.target is not Place.SCHEDULE:
            yield (("ZREM", self._key(self._keys.schedule), self._text(before.task_id)),)
        if move.source is Place.SCHEDULE:
            yield (("ZREM", self._key(self._keys.claimed), self._text(before.task_id)),)
        receipt = before.receipt
        if receipt is not None and receipt.entry_id != after.entry_id:
            yield from self.remove(receipt)
        if before.dlq_entry_id is not None and before.dlq_entry_id != after.dlq_entry_id:
            letter = self._text(before.dlq_entry_id)
            yield (("XDEL", self._key(self._keys.dead_letters), letter),)
