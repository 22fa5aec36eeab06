"""Durations, moments and counts as people read them."""

from datetime import datetime, timedelta
from typing import Final

_SHORT: Final = timedelta(seconds=10)
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def span(duration: timedelta) -> str:
    """Say how long something takes, in its two largest units; tenths below ten seconds, and nothing below zero."""
    if duration < _SHORT:
        return f"{max(0.0, duration.total_seconds()):.1f} s"
    left, parts = round(duration.total_seconds()), list[str]()
    for name, size in _UNITS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number} {name}" if number else "")
    return " ".join(part for part in parts[:2] if part)


def moment_text(moment: datetime) -> str:
    """Say when something is, to the second."""
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def counted(number: int, noun: str) -> str:
    """Say how many of something there are."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def tenths(duration: timedelta) -> float:
    """Return *duration* as seconds with one decimal, for programs."""
    return round(duration.total_seconds(), 1)
