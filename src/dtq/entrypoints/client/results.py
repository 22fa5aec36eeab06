"""What a client sends and is answered, the same over every transport."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, TypedDict, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from dtq.domain.errors import DtqError, FieldProblem, InvalidTask
from dtq.domain.json_text import written
from dtq.domain.status import TERMINAL, TaskStatus
from dtq.entrypoints.views import AttemptBody

_AS_TEXT: Final = ("payload", "metadata")

T = TypeVar("T")
Write = Callable[[object], bytes]


class DataclassInstance(Protocol):
    """A value whose class was made by ``dataclasses.dataclass``."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Payload = Mapping[str, object] | Struct | DataclassInstance
"""What can be submitted: a mapping, also a TypedDict, or a value of the handler's payload type."""


class NoResult(DtqError):
    """A task has no result that could be read: it has not succeeded, or what it returned is not kept."""

    code = "NO_RESULT"


class Options(TypedDict, total=False):
    """How a task is to be run; what is left out is the deployment's default."""

    queue: str | None
    idempotency_key: str | None
    max_attempts: int | None
    priority: int | None
    timeout_ms: int | None
    delay_seconds: float | None
    metadata: Mapping[str, Any] | None


class Submission(Struct, frozen=True):
    """A task to be run. The payload is a mapping, or of the handler's own payload type."""

    task_type: str
    payload: Payload = {}
    queue: str | None = None
    idempotency_key: str | None = None
    max_attempts: int | None = None
    priority: int | None = None
    timeout_ms: int | None = None
    delay_seconds: float | None = None
    metadata: Mapping[str, Any] | None = None


class Submitted(Struct, frozen=True, kw_only=True):
    """An accepted submission.

    A duplicate stands for the ended task that its idempotency key belongs to. ``status`` is None where that task is
    not stored any more, or where only a repeated request was answered.
    """

    task_id: str
    status: TaskStatus | None
    duplicate: bool = False


class Cancelled(Struct, frozen=True, kw_only=True):
    """A task that waited, and is canceled."""

    task_id: str
    status: TaskStatus


class TaskState(Struct, frozen=True, kw_only=True):
    """A task as it stood when it was asked for, with payload, result and every attempt that has ended."""

    task_id: str
    task_type: str
    queue: str
    status: TaskStatus
    priority: int
    attempt: int
    max_attempts: int
    timeout_ms: int
    created_at: datetime
    available_at: datetime
    payload: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    idempotency_key: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    duration_ms: int | None = None
    worker_id: str | None = None
    result: Any = None
    result_expired: bool = False
    result_truncated: bool = False
    error_class: str | None = None
    error_message: str | None = None
    retryable: bool | None = None
    retry_delay_ms: int | None = None
    cancel_requested: bool = False
    history: list[AttemptBody] = []

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended."""
        return self.status in TERMINAL

    @property
    def succeeded(self) -> bool:
        """Whether the task has ended as it should."""
        return self.status is TaskStatus.SUCCEEDED

    def result_as(self, kind: type[T]) -> T:
        """Return the result as a value of *kind*, such as a Struct.

        Raises NoResult, whose message says why there is none, or msgspec.ValidationError where it is of another kind.
        """
        missing = self._why_no_result()
        if missing:
            raise NoResult(f"task {self.task_id} has no result: {missing}")
        return msgspec.convert(self.result, kind, str_keys=True)

    def _why_no_result(self) -> str:
        if not self.succeeded:
            failed = "" if self.error_class is None else f" ({self.error_class}: {self.error_message})"
            return f"it is {self.status}{failed}"
        if self.result_truncated:
            return "it was larger than DTQ_RESULT_MAX_BYTES"
        return "it was kept for DTQ_RESULT_RETENTION_S, which is over" if self.result_expired else ""


def fields_of(submission: Submission, *, write: Write = written) -> dict[str, object]:
    """Return a submission as it is admitted. Raises InvalidTask where something in it cannot be JSON."""
    fields: dict[str, object] = {name: value for name, value in asdict(submission).items() if value is not None}
    for name in _AS_TEXT:
        if name in fields:
            fields[name] = _text(fields[name], field=name, write=write)
    return fields


def _text(value: object, *, field: str, write: Write) -> str:
    try:
        return write(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidTask((FieldProblem(field, f"cannot be written as JSON: {error}"),)) from error
