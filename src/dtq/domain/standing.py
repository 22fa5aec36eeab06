"""Where a task stands in the structures of its broker, as it was found at one moment."""

from datetime import datetime, timedelta

from msgspec import Struct

from dtq.domain.task import Task, WorkerId


class Holding(Struct, frozen=True, kw_only=True):
    """Who has read a task's entry, and how long ago the owner was last heard of."""

    owner: WorkerId
    idle: timedelta


class Standing(Struct, frozen=True, kw_only=True):
    """A task without its payload, and what surrounds it.

    ``task`` is None where its record cannot be read; then ``unreadable`` is a clause that says so.
    ``is_home`` tells whether the place that the task should be in holds it, ``on_loan`` whether a leader has taken it
    from the schedule; ``due`` and ``claimed_at`` are when the schedule has it and when it was taken. ``above`` counts
    the entries of higher priorities that nobody has read, ``before`` those of its own that are older; where
    ``before_is_whole`` is false, there are more. ``spoiled`` names the priorities, among these, that cannot be read:
    what is in them is not counted.
    """

    task: Task | None
    unreadable: str = ""
    paused: bool = False
    is_home: bool = True
    on_loan: bool = False
    due: datetime | None = None
    claimed_at: datetime | None = None
    holding: Holding | None = None
    above: int = 0
    before: int = 0
    before_is_whole: bool = True
    spoiled: tuple[int, ...] = ()
