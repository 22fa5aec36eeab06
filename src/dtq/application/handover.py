"""What the main loop and the beat tell each other, although they may live in two threads."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from dtq.ports.broker import HeldLease, LeaseReport


class Hold(Struct, frozen=True, kw_only=True):
    """A lease to be kept until ``until``, on the monotonic clock: its task's deadline and the grace."""

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
    """Two values that the main loop replaces whole, and two calls back to it; so no lock is needed.

    ``ticks`` is counted up by the main loop while it lives. The calls must be safe to make from another thread.
    """

    def __init__(
        self, *, on_reports: Callable[[Sequence[LeaseReport]], None], on_trouble: Callable[[str, str], None]
    ) -> None:
        self.condition = Condition()
        self.ticks = 0
        self.on_reports = on_reports
        self.on_trouble = on_trouble
