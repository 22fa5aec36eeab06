"""How long a broker keeps what it knows, so that nothing lives for ever and nothing dies while it is needed."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from dtq.domain.status import Place
from dtq.domain.task import Task, place_of


class Retention(Struct, frozen=True, kw_only=True):
    """For how long ended tasks, their results and their idempotency records are kept after their last change."""

    task: timedelta = timedelta(days=7)
    result: timedelta = timedelta(hours=1)
    idempotency: timedelta = timedelta(days=1)


LIVING: Final = Retention()
"""The least for which a task that has not ended is kept, beyond the time that its state may still take.

Nobody renews anything while no worker runs, so these are also the bounds of how long that may last.
"""

SHORTEST: Final = timedelta(hours=6)
"""What a record that lives by its task has left in any case, beyond the time that this still takes.

The leader renews what waits for long before half of the least is over.
"""

LEAD_TERM: Final = timedelta(seconds=10)
"""For how long a worker leads that does not renew its lead; no lock is ever given a longer life."""

_NO_TIME: Final = timedelta()

# named here, since to look up a member of an enumeration takes longer than to compare it
_HELD: Final = Place.HELD
_SCHEDULE: Final = Place.SCHEDULE


def task_lifetime(task: Task, *, at: datetime, retention: Retention) -> timedelta:
    """Return how long the record of *task* is kept when it is written, or renewed, at this moment."""
    if task.is_terminal:
        return retention.task
    least = max(LIVING.task, retention.task)
    return least + _time_needed(task, at=at)


def record_lifetime(task: Task, *, at: datetime, retention: Retention) -> timedelta:
    """Return how long the idempotency record of *task* is kept when it is written, or renewed, at this moment."""
    if task.is_terminal:
        return retention.idempotency
    least = max(LIVING.idempotency, retention.idempotency)
    return least + _time_needed(task, at=at)


def mark_lifetime(retention: Retention) -> timedelta:
    """Return how long it is remembered that tasks were cancelled: as long as a copy of their entries may turn up."""
    return max(retention.task, LIVING.task)


def is_short(task: Task, *, left: timedelta, at: datetime) -> bool:
    """Tell whether what has only *left* to live may be gone before *task*, which it is about, has ended."""
    return not task.is_terminal and left < _time_needed(task, at=at) + SHORTEST


def _time_needed(task: Task, *, at: datetime) -> timedelta:
    """Return how long the task may stay in its state by its own terms: its delay, or its run up to the deadline."""
    place = place_of(task)
    if place is _HELD:
        needed = (task.started_at or at) + task.timeout - at
    elif place is _SCHEDULE:
        needed = task.available_at - at
    else:
        return _NO_TIME
    return max(_NO_TIME, needed)
