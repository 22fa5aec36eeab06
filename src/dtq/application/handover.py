"""What the main loop and the beat tell each other, although they may live in two threads."""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from dtq.domain.workers import Heartbeat, self_reported
from dtq.ports.broker import HeldLease, LeaseReport


class Hold(Struct, frozen=True, kw_only=True):
    """A lease to be kept; ``until``, on the monotonic clock, is its task's deadline and the grace."""

    lease: HeldLease
    until: float


class Condition(Struct, frozen=True, kw_only=True):
    """How the worker is, as its main loop sees it."""

    holds: tuple[Hold, ...] = ()
    active: int = 0
    draining: bool = False
    processed: int = 0
    failed: int = 0
    retried: int = 0


class Handover:
    """What one of the two looks at or replaces whole, and calls back to the main loop; so no lock is needed.

    *look* tells how the worker is, whichever thread asks. ``ticks`` is counted up by the main loop while it lives.
    ``announced_at`` is when, on the monotonic clock, the last sign of life was sent that the broker took. The calls
    must be safe to make from another thread.
    """

    def __init__(
        self,
        *,
        look: Callable[[], Condition],
        on_reports: Callable[[Sequence[LeaseReport]], None],
        on_trouble: Callable[[str, Exception], None],
        on_replaced: Callable[[], None],
    ) -> None:
        self._look = look
        self.ticks = 0
        self.announced_at = float("-inf")
        self.on_reports = on_reports
        self.on_trouble = on_trouble
        self.on_replaced = on_replaced

    @property
    def condition(self) -> Condition:
        """How the worker is, now."""
        return self._look()


def sign_of_life(first: Heartbeat, condition: Condition, *, at: datetime) -> Heartbeat:
    """Return a heartbeat as of now; the names and times of the worker's *first* one stay as they are."""
    return replace(
        first,
        last_heartbeat=at,
        status=self_reported(active=condition.active, draining=condition.draining),
        active_tasks=condition.active,
        tasks_processed=condition.processed,
        tasks_failed=condition.failed,
        tasks_retried=condition.retried,
    )
