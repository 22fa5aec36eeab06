"""Whether a task is scheduled once, and at the time that its record says; and how far clocks may be apart."""

from datetime import datetime, timedelta
from typing import Final

from dtq.domain.phrases import moment_text
from dtq.domain.task import Task

CLOCK_TOLERANCE: Final = timedelta(seconds=1)
"""How far two clocks may be apart."""


def mistimed(task: Task, *, due: datetime | None, claimed_at: datetime | None, now: datetime) -> str | None:
    """Say what is wrong with the times at which a task is scheduled and was taken on loan; None where nothing is.

    ``now`` is the latest that it may be. What comes back from a leader that went away is due when it comes back, which
    is after the task's own time.
    """
    if due is not None and claimed_at is not None:
        return f"it is on loan since {moment_text(claimed_at)}, and the schedule has it as well"
    if due is not None and not task.available_at <= due <= max(task.available_at, now):
        return f"it may start at {moment_text(task.available_at)}, and the schedule has it at {moment_text(due)}"
    if claimed_at is not None and claimed_at > now:
        return f"it has been on loan since {moment_text(claimed_at)}, which is still to come: nobody returns it"
    return None
