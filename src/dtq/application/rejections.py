"""Submissions that are refused, and under which reason each is counted."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.errors import DtqError, IdempotencyInProgress, OutcomeUnknown, QueueFull
from dtq.ports.events import Observer

NOTICE: Final = "submission_rejected"


@contextmanager
def rejections(observer: Observer, fields: Mapping[str, object]) -> Iterator[None]:
    """Tell *observer* of the refusal that the block raises, if it raises one, and let it go on."""
    try:
        yield
    except DtqError as error:
        queue = fields.get("queue")
        named = str(DEFAULT_QUEUE) if queue is None else queue
        observer.noticed(NOTICE, queue=named if isinstance(named, str) else None, reason=reason_of(error))
        raise


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
