"""When a failed attempt is repeated (contract section 4)."""

import math
from datetime import timedelta
from typing import Final

from msgspec import Struct

LONGEST_DELAY: Final = timedelta(days=30)
"""The highest cap that may be set: as long as a submission may be delayed."""


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Exponential backoff: the first delay, the cap, and the jitter as a fraction of the capped delay."""

    base: timedelta = timedelta(seconds=1)
    maximum: timedelta = timedelta(seconds=60)
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if not timedelta() < self.base <= self.maximum <= LONGEST_DELAY:
            given = f"base {self.base} and maximum {self.maximum}"
            message = f"retry delays need 0 < base <= maximum <= {LONGEST_DELAY}, not {given}"
            raise ValueError(message)
        if not 0 <= self.jitter <= 1:
            message = f"retry jitter is within 0..1, not {self.jitter}"
            raise ValueError(message)


def delay_after(attempt: int, *, policy: RetryPolicy, jitter: float) -> timedelta:
    """Return how long to wait after *attempt* failed, in whole milliseconds.

    *jitter* is the drawn factor, within ±policy.jitter. The cap is applied before the jitter, as the contract has it,
    so the result lies within 0..maximum * (1 + policy.jitter).
    """
    if attempt < 1 or not -policy.jitter <= jitter <= policy.jitter:
        message = f"attempt {attempt} or jitter {jitter} is out of bounds (jitter within {policy.jitter})"
        raise ValueError(message)
    doublings = attempt - 1
    reaches_cap = doublings >= math.ceil(policy.maximum / policy.base).bit_length()
    capped = policy.maximum if reaches_cap else min(policy.maximum, policy.base * 2**doublings)
    milliseconds = round(capped / timedelta(milliseconds=1) * (1 + jitter))
    return timedelta(milliseconds=max(0, milliseconds))
