"""What a decision answers where it does not answer with a change."""

from enum import StrEnum

from msgspec import Struct


class DropReason(StrEnum):
    """Why nothing is to be done."""

    ALREADY_MINE = "already_mine"
    """This very lease has started the task: run it."""
    STALE = "stale"
    """The execution is no longer the task's: drop what it made."""
    ENDED = "ended"
    NOT_WAITING = "not_waiting"
    NOT_DUE = "not_due"
    """The task waits for a later time: leave it in the schedule."""
    ALREADY_REQUESTED = "already_requested"
    NOT_DEAD = "not_dead"
    DISCARDED = "discarded"
    MOVED = "moved"
    """The task is no longer what the act was meant for."""


class Drop(Struct, frozen=True):
    """Write nothing."""

    reason: DropReason


class Acknowledge(Struct, frozen=True, kw_only=True):
    """Remove the entry and change no task; *absorbed* where it was a duplicate that is to be announced."""

    absorbed: bool
