"""What a handler returned, as JSON text."""

from datetime import timedelta
from typing import Final

from dtq.domain.json_text import encoded, parse
from dtq.domain.outcome import RESULT_NOT_SERIALIZABLE, AttemptResult, Outcome, Succeeded, failed
from dtq.domain.text import class_name, text_of

_NOTHING: Final = encoded(None)
"""What most handlers return."""


def outcome_of(value: object, *, max_bytes: int, ran: timedelta | None = None) -> Outcome:
    """Return the success with *value* as its result, or the permanent failure that it is no JSON; *ran* is its time.

    A result over *max_bytes* is not kept. The work is done either way, so another attempt would only repeat it.
    """
    try:
        encoding = _NOTHING if value is None else encoded(value)
        if len(encoding) > max_bytes:
            return Succeeded(result=None, truncated=True, ran=ran)
        text = encoding.decode()
        if value is not None:
            # what a handler writes as text of its own may be anything, and readers would meet it at every look
            parse(text)
        return Succeeded(result=text, ran=ran)
    except BaseException as error:  # noqa: BLE001 - the handler's own objects may raise anything while they are read
        return not_serializable(f"{class_name(error)}: {text_of(error)}")


def not_serializable(problem: str) -> Outcome:
    """Describe a result that cannot be kept because it is no JSON."""
    return failed(RESULT_NOT_SERIALIZABLE, problem, retryable=False, kind=AttemptResult.ERROR)
