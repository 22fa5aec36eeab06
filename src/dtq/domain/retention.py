"""How long a broker keeps what it knows, so that nothing lives for ever and nothing dies while it is needed."""

from datetime import timedelta

from msgspec import Struct

from dtq.domain.change import Change
from dtq.domain.status import Place
from dtq.domain.task import place_of


class Retention(Struct, frozen=True, kw_only=True):
    """For how long tasks, results and idempotency records are kept after their last change."""

    task: timedelta = timedelta(days=7)
    result: timedelta = timedelta(hours=1)
    idempotency: timedelta = timedelta(days=1)


def task_lifetime(change: Change, *, retention: Retention) -> timedelta:
    """Return how long the record of the changed task is kept: its retention and the delay that is left."""
    return retention.task + _delay_left(change)


def record_lifetime(change: Change, *, retention: Retention) -> timedelta:
    """Return how long the idempotency record of the changed task is kept."""
    return retention.idempotency + _delay_left(change)


def _delay_left(change: Change) -> timedelta:
    if place_of(change.after) is not Place.SCHEDULE:
        return timedelta()
    return max(timedelta(), change.after.available_at - change.at)
