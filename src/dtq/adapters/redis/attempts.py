"""The attempts of a task as one JSON text."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Final

import msgspec
from msgspec.structs import astuple

from dtq.domain.entry import HIGHEST_ATTEMPTS, milliseconds, moment
from dtq.domain.task import AttemptRecord, Failure, WorkerId

_MILLISECOND: Final = timedelta(milliseconds=1)


class _Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attempt record as JSON."""

    attempt: Annotated[int, msgspec.Meta(ge=0, le=HIGHEST_ATTEMPTS)]
    finished_at: int
    started_at: int | None = None
    worker_id: str | None = None
    error_class: str | None = None
    error_message: str = ""
    retryable: bool = False
    retry_delay_ms: int | None = None


_NO_FAILURE: Final = (None, "", False)
_encode: Final = msgspec.json.Encoder().encode
_attempts: Final = msgspec.json.Decoder(tuple[_Attempt, ...])


def history_text(records: Sequence[AttemptRecord]) -> str:
    """Write attempts; nothing where there are none."""
    return _encode([_written(record) for record in records]).decode() if records else ""


def history(text: str) -> tuple[AttemptRecord, ...]:
    """Read attempts. Raises msgspec.ValidationError, DecodeError, ValueError or RecursionError."""
    return tuple(_read(attempt) for attempt in _attempts.decode(text))


def _written(record: AttemptRecord) -> _Attempt:
    failure = record.failure
    error_class, error_message, is_retryable = _NO_FAILURE if failure is None else astuple(failure)
    # by position: names would take longer than the rest
    return _Attempt(
        record.attempt,
        milliseconds(record.finished_at),
        None if record.started_at is None else milliseconds(record.started_at),
        record.worker_id,
        error_class,
        error_message,
        is_retryable,
        None if record.retry_delay is None else record.retry_delay // _MILLISECOND,
    )


def _read(attempt: _Attempt) -> AttemptRecord:
    failure = None
    if attempt.error_class is not None:
        failure = Failure(
            error_class=attempt.error_class, error_message=attempt.error_message, retryable=attempt.retryable
        )
    return AttemptRecord(
        attempt=attempt.attempt,
        finished_at=moment(attempt.finished_at),
        started_at=None if attempt.started_at is None else moment(attempt.started_at),
        worker_id=None if attempt.worker_id is None else WorkerId(attempt.worker_id),
        failure=failure,
        retry_delay=None if attempt.retry_delay_ms is None else timedelta(milliseconds=attempt.retry_delay_ms),
    )
