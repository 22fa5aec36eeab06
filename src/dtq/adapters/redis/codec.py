"""Tasks as hash fields: times in milliseconds since the epoch, '' for what is absent, JSON text untouched.

This is on the path of every delivery, so the tables are made once, and of a change only what it changed is written.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import compress
from operator import is_not
from typing import Any, Final

import msgspec
from msgspec.structs import astuple

from dtq.adapters.redis.attempts import history, history_text
from dtq.domain.entry import milliseconds, moment
from dtq.domain.errors import BrokerRefused
from dtq.domain.possible import impossibility
from dtq.domain.status import TaskStatus
from dtq.domain.task import Failure, Task
from dtq.domain.text import clean

PAYLOAD: Final = "payload"
VERSION: Final = "version"

Values = Sequence[str | None] | str
"""The values of SNAPSHOT's fields, as the server answers them; where there is no hash, why it did not."""

_MAX_REASON: Final = 100
_ENTRY_ID: Final = re.compile(r"[0-9]{1,15}-(?:[0-9]{1,19}|1[0-7][0-9]{18})")
_NUMBER: Final = re.compile(r"-?[0-9]+")
_MAX_SHOWN: Final = 40
_REMEMBERED: Final = 256
"""Of how many texts it is remembered what they say: tasks that come together share moments, and most a timeout."""
SPOILED: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What reading a field raises where it holds what dtq does not write."""
_REPLACED: Final = "\ufffd"
"""What stands for each byte of an answer that is no text."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_STATUSES: Final[Mapping[str, TaskStatus]] = {status.value: status for status in TaskStatus}


class UnreadableRecord(BrokerRefused):
    """A record that dtq did not write, or that somebody changed; ``why`` names the field and what is wrong with it."""

    def __init__(self, of: str, *, why: str) -> None:
        super().__init__(f"the record of {of} cannot be read: {why}")
        self.why = why


def _flag(value: object) -> str:
    return "1" if value else "0"


def is_set(text: str) -> bool:
    """Read a flag."""
    return text == "1"


def number_of(text: str) -> int:
    """Read a number, written as it always is: in plain digits, which int would not insist on."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _moment_text(value: datetime) -> str:
    return str(milliseconds(value))


@lru_cache(maxsize=_REMEMBERED)
def moment_of(text: str) -> datetime:
    """Read a moment."""
    return moment(number_of(text))


def _duration_text(value: timedelta) -> str:
    return str(value // _MILLISECOND)


@lru_cache(maxsize=_REMEMBERED)
def duration_of(text: str) -> timedelta:
    """Read a duration."""
    return number_of(text) * _MILLISECOND


def entry_id_of(text: str) -> Any:
    """Read the id of a stream entry."""
    # the server would refuse a request for it, and with that for all others in it
    if not _ENTRY_ID.fullmatch(text):
        raise ValueError(text)
    return text


def version_of(text: str) -> Any:
    """Read a version."""
    if _REPLACED in text:
        raise ValueError(text)
    return text


_FIELDS: Final[Mapping[str, tuple[str, Callable[[Any], str], Callable[[str], Any]]]] = {
    "version": (VERSION, str, version_of),
    "task_id": ("task_id", str, str),
    "queue": ("queue", str, str),
    "task_type": ("task_type", str, str),
    "priority": ("priority", str, number_of),
    "max_attempts": ("max_attempts", str, number_of),
    "timeout": ("timeout_ms", _duration_text, duration_of),
    "created_at": ("created_at", _moment_text, moment_of),
    "available_at": ("available_at", _moment_text, moment_of),
    "status": ("status", str, _STATUSES.__getitem__),
    "metadata": ("metadata", str, str),
    "idempotency_key": ("idempotency_key", str, str),
    "ttl_at": ("ttl_at", _moment_text, moment_of),
    "attempt": ("attempt", str, number_of),
    "started_at": ("started_at", _moment_text, moment_of),
    "finished_at": ("finished_at", _moment_text, moment_of),
    "duration": ("duration_ms", _duration_text, duration_of),
    "worker_id": ("worker_id", str, str),
    "retry_delay": ("retry_delay_ms", _duration_text, duration_of),
    "cancel_requested": ("cancel_requested", _flag, is_set),
    "result_truncated": ("result_truncated", _flag, is_set),
    "history": ("history", history_text, history),
    "requeued_at": ("requeued_at", _moment_text, moment_of),
    "previous_attempts": ("previous_attempts", history_text, history),
    "previous_attempts_dropped": ("previous_attempts_dropped", str, number_of),
    "discarded": ("discarded", _flag, is_set),
    "entry_id": ("entry_id", str, entry_id_of),
    "lease": ("lease", str, str),
    "dlq_entry_id": ("dlq_entry_id", str, entry_id_of),
}
"""Each attribute of a task with its field and how to write and read that; payload and failure are beside it.

What is absent, which is '', is neither written nor read by these.
"""

_FAILURE: Final = ("error_class", "error_message", "retryable")

SNAPSHOT: Final = (*(field for field, _, _ in _FIELDS.values()), *_FAILURE)
"""The fields of a snapshot, version first: everything but the payload and the known tokens."""

_NEEDED: Final = frozenset(field.name for field in msgspec.structs.fields(Task) if field.required)
_NO_SUCH: Final[Mapping[str, str]] = {
    "status": "no status",
    "version": "not text, which nothing can be compared with",
    "entry_id": "no id of a stream entry",
    "dlq_entry_id": "no id of a stream entry",
}

_READERS: Final = tuple((attribute, read) for attribute, (_, _, read) in _FIELDS.items())
_POSITIONS: Final = range(len(Task.__struct_fields__))
_LEFT_OUT: Final = frozenset(
    {
        "cancel_requested",
        "result_truncated",
        "history",
        "previous_attempts",
        "previous_attempts_dropped",
        "discarded",
    }
)
"""What a new record does not have while it is at its default, as which a missing field is read."""

_NOTHING: Final = tuple(field.default if field.name in _LEFT_OUT else None for field in msgspec.structs.fields(Task))


def _of_failure(name: str, write: Callable[[Any], str]) -> Callable[[Failure], str]:
    return lambda failure: write(getattr(failure, name))


_BESIDE: Final[Mapping[str, Sequence[tuple[str, Callable[[Any], str]]]]] = {
    "version": (),
    "payload": (),
    "failure": [(name, _of_failure(name, _flag if name == "retryable" else str)) for name in _FAILURE],
}
_COLUMNS: Final[Sequence[Sequence[tuple[str, Callable[[Any], str]]]]] = tuple(
    _BESIDE[attribute] if attribute in _BESIDE else [_FIELDS[attribute][:2]] for attribute in Task.__struct_fields__
)
"""For each attribute of a task the fields that a change of it writes, each with how to write that."""


def task_of(values: Values | None, *, task_id: str, payload: str | None = None) -> Task | None:
    """Read the task that is stored under *task_id* from the values of SNAPSHOT; None where there is no record.

    Raises UnreadableRecord, also for a record that reads well and is no possible task, or is another one's.
    """
    if isinstance(values, str):
        raise UnreadableRecord("a task", why=clean(values, limit=_MAX_REASON))
    if not values or not any(values):
        return None
    try:
        # Any: no type says that compress leaves out what is absent
        given: Any = compress(zip(_READERS, values, strict=False), values)
        found = {attribute: read(text) for (attribute, read), text in given}
        error_class, error_message, retryable = values[-3:]
        if retryable:
            found["failure"] = Failure(
                error_class=error_class or "", error_message=error_message or "", retryable=is_set(retryable)
            )
        task = Task(payload=payload, **found)
        fault = impossibility(task) if task.task_id == task_id else _another(task.task_id)
    except SPOILED as error:
        raise _unreadable(task_id, _fault_of(values) or type(error).__name__) from error
    if fault is not None:
        raise _unreadable(task_id, fault)
    return task


def _unreadable(task_id: str, why: str) -> UnreadableRecord:
    return UnreadableRecord(f"task {clean(task_id, limit=_MAX_REASON)}", why=clean(why, limit=_MAX_REASON))


def _another(task_id: str) -> str:
    return f"task_id is {_shown(task_id)}, that of another task"


def _fault_of(values: Sequence[str | None]) -> str | None:
    """Name the first field that cannot be read, and say what is wrong with it; what handlers said is not shown."""
    for (attribute, (field, _, read)), text in zip(_FIELDS.items(), values, strict=False):
        if not text:
            if attribute in _NEEDED:
                return f"{field} is missing"
            continue
        try:
            read(text)
        except SPOILED:
            if read is history:
                return f"{field} is no list of attempts"
            return f"{field} is {_shown(text)}, {_wrong(attribute, text)}"
    return None


def _wrong(attribute: str, text: str) -> str:
    said = _NO_SUCH.get(attribute)
    return said or ("out of bounds" if _NUMBER.fullmatch(text) else "not a number")


def _shown(text: str) -> str:
    """Show what anybody may have written."""
    return f'"{clean(text, limit=_MAX_SHOWN)}{"..." if len(text) > _MAX_SHOWN else ""}"'


def compared(before: Task | None, after: Task) -> bytes:
    """Tell of each attribute whether it is another one in *after*; without *before*, whether it has to be written.

    Where nothing is stored yet, what a missing field is read as is left out.
    """
    return bytes(map(is_not, astuple(after), _NOTHING if before is None else astuple(before)))


class ChangedFields:
    """The fields of the attributes that a comparison found to be others, without payload and version."""

    def __init__(self, changed: bytes) -> None:
        found = [(name, (at, write)) for at in compress(_POSITIONS, changed) for name, write in _COLUMNS[at]]
        self.names: Final = tuple(name for name, _ in found)
        self._writers: Final = tuple(writer for _, writer in found)

    def texts(self, task: Task) -> list[str]:
        """Return what a task has in these fields, in their order."""
        values = astuple(task)
        return ["" if values[at] is None else write(values[at]) for at, write in self._writers]
