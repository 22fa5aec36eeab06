"""What a handler returned, as JSON text."""

import math
from typing import Final

import msgspec

from dtq.domain.outcome import RESULT_NOT_SERIALIZABLE, AttemptResult, Outcome, Succeeded, failed

_ENCODER: Final = msgspec.json.Encoder()


def outcome_of(value: object, *, max_bytes: int) -> Outcome:
    """Return the success with *value* as its result, or the permanent failure that it is no JSON.

    A result over *max_bytes* is not kept. The work is done either way, so another attempt would only repeat it.
    """
    try:
        text = _ENCODER.encode(value)
        # NaN and infinities come out as null, so only a text with a null in it can hide one
        if b"null" in text and has_non_finite(msgspec.to_builtins(value)):
            return not_serializable("numbers must be finite")
        if len(text) > max_bytes:
            return Succeeded(result=None, truncated=True)
        return Succeeded(result=text.decode())
    except Exception as error:  # noqa: BLE001 - the handler's own objects may raise anything while they are read
        return not_serializable(f"{type(error).__name__}: {error}")


def not_serializable(problem: str) -> Outcome:
    """Describe a result that cannot be kept because it is no JSON."""
    return failed(RESULT_NOT_SERIALIZABLE, problem, retryable=False, kind=AttemptResult.ERROR)


def has_non_finite(value: object) -> bool:
    """Tell whether there is a NaN or an infinity in *value*, which JSON has no word for."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case float() as number if not math.isfinite(number):
                return True
            case dict() as members:
                waiting.extend(members.values())
            case list() | tuple() as items:
                waiting.extend(items)
            case _:
                pass
    return False
