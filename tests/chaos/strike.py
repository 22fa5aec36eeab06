"""A fault as it is carried out, and the form of what carries it out."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from tests.chaos.plan import Fault

EVERYBODY: Final = "everybody"


class Strike(Struct, kw_only=True):
    """A fault that was carried out: whom it struck, and from when to when; times are seconds since the beginning."""

    fault: Fault
    whom: str
    at: float
    ended_at: float | None = None

    def __str__(self) -> str:
        until = "the end" if self.ended_at is None else f"{self.ended_at:.2f} s"
        return f"{self.at:7.2f} s  {self.fault.kind} {self.fault.detail} {self.whom} until {until}"


Act: TypeAlias = Callable[[Strike], float | None]
"""The begin or the end of a fault; it answers after how many seconds it wants to be called again, or None."""

Acts: TypeAlias = Mapping[str, tuple[Act, Act]]
"""By kind of fault, how it begins and how it ends."""


def nothing(_: Strike) -> None:
    """The end of what ends by itself."""
