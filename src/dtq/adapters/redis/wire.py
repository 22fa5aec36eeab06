"""Events, signals, idempotency records, audit entries and heartbeats as text."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

import msgspec

from dtq.domain.admission import TASK_ID_PATTERN
from dtq.domain.audit import DONE, AuditEntry
from dtq.domain.entry import milliseconds, moment
from dtq.domain.events import Event
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.possible import HIGHEST_COUNT
from dtq.domain.task import QueueName, TaskId, WorkerId
from dtq.domain.workers import Heartbeat, WorkerStatus
from dtq.ports.workers import Signal

_encode: Final = msgspec.json.Encoder().encode
_events: Final = msgspec.json.Decoder(Event)
_signals: Final = msgspec.json.Decoder(Signal)
_records: Final = msgspec.json.Decoder(IdempotencyRecord)
_names: Final = msgspec.json.Decoder(tuple[str, ...])


Value = TypeVar("Value")


def json_text(value: Event | Signal | IdempotencyRecord) -> str:
    """Write a value as JSON; the members are its fields, in their order."""
    return _encode(value).decode()


def event_of(text: str) -> Event | None:
    """Read an event; None where the text is none, for anybody may publish."""
    event = _decoded(_events, text)
    return event if event is not None and event.ts.tzinfo is not None else None


def signal_of(text: str) -> Signal | None:
    """Read a signal; None where the text is none."""
    return _decoded(_signals, text)


def read_record(text: str) -> IdempotencyRecord | None:
    """Read an idempotency record; None where the text is none."""
    record = _decoded(_records, text)
    return record if record is not None and TASK_ID_PATTERN.fullmatch(record.task_id) else None


def _decoded(decoder: msgspec.json.Decoder[Value], text: str) -> Value | None:
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError):
        # text that is no Unicode is a ValueError too, and what nests too deep is none
        return None


def record_prefix(task_id: TaskId) -> str:
    """Return what the idempotency record of a task begins with, whatever its state."""
    return f'{{"task_id":{_encode(task_id).decode()}'


def record_end(task_id: TaskId) -> str:
    """Return at which byte that prefix ends."""
    return str(len(record_prefix(task_id).encode()) - 1)


def audit_fields(entry: AuditEntry) -> dict[str, str]:
    """Write an audit entry as stream fields."""
    return {
        "actor": entry.actor,
        "action": entry.action,
        "task_id": entry.task_id or "",
        "ts": str(milliseconds(entry.ts)),
        "request_id": entry.request_id,
        "queue": entry.queue or "",
        "count": "" if entry.count is None else str(entry.count),
        "outcome": entry.outcome,
        **({"subject": entry.subject} if entry.subject else {}),
    }


def audit_entry(fields: Mapping[str, str]) -> AuditEntry | None:
    """Read an audit entry; None where the fields are not those of one."""
    count = fields.get("count", "")
    try:
        return AuditEntry(
            actor=fields["actor"],
            action=fields["action"],
            ts=moment(int(fields["ts"])),
            request_id=fields["request_id"],
            task_id=TaskId(fields["task_id"]) if fields["task_id"] else None,
            queue=QueueName(fields["queue"]) if fields["queue"] else None,
            count=_count(count) if count else None,
            outcome=fields.get("outcome", DONE),
            subject=fields.get("subject") or None,
        )
    except (KeyError, ValueError):
        return None


def heartbeat_fields(heartbeat: Heartbeat) -> dict[str, str]:
    """Write a heartbeat as hash fields."""
    return {
        "worker_id": heartbeat.worker_id,
        "hostname": heartbeat.hostname,
        "started_at": str(milliseconds(heartbeat.started_at)),
        "last_heartbeat": str(milliseconds(heartbeat.last_heartbeat)),
        "active_tasks": str(heartbeat.active_tasks),
        "concurrency": str(heartbeat.concurrency),
        "tasks_processed": str(heartbeat.tasks_processed),
        "tasks_failed": str(heartbeat.tasks_failed),
        "tasks_retried": str(heartbeat.tasks_retried),
        "status": heartbeat.status,
        "queue": heartbeat.queue,
        "task_types": _encode(heartbeat.task_types).decode(),
        "visibility_timeout_ms": str(heartbeat.visibility_timeout // timedelta(milliseconds=1)),
        "life": heartbeat.life,
    }


def heartbeat_of(fields: Mapping[str, str]) -> Heartbeat | None:
    """Read a heartbeat; None where there is none, or not all of one."""
    try:
        return Heartbeat(
            worker_id=WorkerId(fields["worker_id"]),
            hostname=fields["hostname"],
            started_at=moment(int(fields["started_at"])),
            last_heartbeat=moment(int(fields["last_heartbeat"])),
            queue=QueueName(fields["queue"]),
            concurrency=_count(fields["concurrency"]),
            status=WorkerStatus(fields["status"]),
            active_tasks=_count(fields["active_tasks"]),
            tasks_processed=_count(fields["tasks_processed"]),
            tasks_failed=_count(fields["tasks_failed"]),
            tasks_retried=_count(fields["tasks_retried"]),
            task_types=_names.decode(fields["task_types"]),
            visibility_timeout=timedelta(milliseconds=int(fields["visibility_timeout_ms"])),
            life=fields.get("life", ""),
        )
    except (KeyError, ValueError, OverflowError, RecursionError):
        return None


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count <= HIGHEST_COUNT:
        message = "a count is out of bounds"
        raise ValueError(message)
    return count


def pairs(flat: Sequence[str]) -> dict[str, str]:
    """Return a flat list of names and values as a mapping."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def flat(fields: Mapping[str, str]) -> list[str]:
    """Return a mapping as a flat list of names and values."""
    return [text for pair in fields.items() for text in pair]
