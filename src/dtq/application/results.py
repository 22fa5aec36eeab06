"""What a handler returned, as JSON text."""

from dtq.domain.json_text import written
from dtq.domain.outcome import RESULT_NOT_SERIALIZABLE, AttemptResult, Outcome, Succeeded, failed


def outcome_of(value: object, *, max_bytes: int) -> Outcome:
    """Return the success with *value* as its result, or the permanent failure that it is no JSON.

    A result over *max_bytes* is not kept. The work is done either way, so another attempt would only repeat it.
    """
    try:
        text = written(value)
        if len(text) > max_bytes:
            return Succeeded(result=None, truncated=True)
        return Succeeded(result=text.decode())
    except Exception as error:  # noqa: BLE001 - the handler's own objects may raise anything while they are read
        return not_serializable(f"{type(error).__name__}: {error}")


def not_serializable(problem: str) -> Outcome:
    """Describe a result that cannot be kept because it is no JSON."""
    return failed(RESULT_NOT_SERIALIZABLE, problem, retryable=False, kind=AttemptResult.ERROR)
