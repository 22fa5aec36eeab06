"""Commands that several kinds of act are made of, and steps that are not those of a change."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from dtq.adapters.redis.envelope import Argument, Command, Envelope, Guard, Step
from dtq.adapters.redis.keys import GROUP, MAX_AUDIT, Keyspace
from dtq.adapters.redis.wire import audit_fields, flat, json_text
from dtq.domain.audit import AuditEntry
from dtq.domain.events import Event
from dtq.domain.task import Receipt
from dtq.ports.backend import BackendOptions

_MILLISECOND: Final = timedelta(milliseconds=1)


def milliseconds_text(duration: timedelta) -> str:
    """Return a lifetime as the commands want it, at least one millisecond."""
    count = duration // _MILLISECOND
    return str(count) if count > 0 else "1"


def appended(stream: int, fields: Sequence[Argument], *, limit: int) -> Command:
    """Append an entry to a stream that is trimmed to about *limit*."""
    return ("XADD", stream, "MAXLEN", "~", str(limit), "*", *fields)


def published(channel: int, event: int) -> Command:
    """Publish an event."""
    return ("PUBLISH", channel, event)


def removed(stream: int, entry_id: int) -> Iterator[Command]:
    """Delete an entry, then acknowledge it: a pending id without its entry heals itself, the reverse is lost."""
    yield ("XDEL", stream, entry_id)
    yield ("XACK", stream, GROUP, entry_id)


class Writer:
    """Writes steps that are not those of a change into one envelope."""

    def __init__(self, envelope: Envelope, *, keys: Keyspace, options: BackendOptions) -> None:
        self._envelope = envelope
        self._keys = keys
        self._options = options

    def audit(self, entry: AuditEntry, *, count: Argument | None = None) -> Step:
        """Append an audit entry, with its own count or with one that is known only in the step."""
        fields = self._envelope.fields(flat(audit_fields(entry)))
        fields += () if count is None else ("count", count)
        return (appended(self._envelope.key(self._keys.audit), fields, limit=MAX_AUDIT),)

    def publish(self, event: Event, *, guard: Guard | None = None) -> Step:
        """Publish an event, where *guard* holds."""
        command = published(self._envelope.key(self._keys.events), self._envelope.text(json_text(event)))
        return (command,) if guard is None else (command, guard)

    def bury(self, fields: Mapping[str, str]) -> Step:
        """Append a dead letter."""
        letters, limit = self._envelope.key(self._keys.dead_letters), self._options.dead_letter_limit
        return (appended(letters, self._envelope.fields(flat(fields)), limit=limit),)

    def remove(self, receipt: Receipt) -> Iterator[Step]:
        """Take an entry out of its stream, and from whoever has read it."""
        stream = self._envelope.key(self._keys.stream(receipt.queue, receipt.priority))
        for command in removed(stream, self._envelope.text(receipt.entry_id)):
            yield (command,)
