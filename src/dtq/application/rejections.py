"""Submissions that are refused, and under which reason each is counted."""

from collections.abc import Mapping
from typing import Final

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.errors import DtqError, IdempotencyInProgress, OutcomeUnknown, QueueFull
from dtq.ports.events import Observer

NOTICE: Final = "submission_rejected"


def queue_named(fields: Mapping[str, object] | None) -> str | None:
    """Return what a submission calls its queue; None where that is no text, and of one that cannot be read."""
    if fields is None:
        return None
    queue = fields.get("queue")
    named = str(DEFAULT_QUEUE) if queue is None else queue
    return named if isinstance(named, str) else None


def tell_rejected(error: DtqError, *, queue: str | None, observer: Observer) -> None:
    """Tell *observer* that a submission is refused."""
    observer.noticed(NOTICE, queue=queue, reason=reason_of(error))


def reason_of(error: DtqError) -> str:
    """Return one of a few words: a limit's name, or what kind of error it is."""
    match error:
        case QueueFull():
            return error.reason
        case IdempotencyInProgress():
            return "idempotency"
        case OutcomeUnknown():
            return "outcome_unknown"
        case _:
            return error.code.lower()
