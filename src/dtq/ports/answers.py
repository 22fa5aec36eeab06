"""What a broker answers to a commit."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from dtq.domain.change import Change, Requirement
from dtq.domain.errors import OutcomeUnknown
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.task import Task

TOKENS_REMEMBERED: Final = 8
"""Of how many commits of a task, the last ones, a broker knows the tokens."""

LimitName = Literal["queue_full", "schedule_full", "too_many_queues"]


class Applied(Struct, frozen=True):
    """The change was made. ``task`` is the task as stored now, its payload as it was in the change.

    ``detached`` tells that the record of the task's idempotency key is another task's, or gone, and was left alone.
    """

    task: Task
    detached: bool = False


class Already(Struct, frozen=True):
    """One of the task's last TOKENS_REMEMBERED commits had this token. ``task`` is as stored, None if it is gone."""

    task: Task | None


class Conflict(Struct, frozen=True):
    """The stored task is not the one the change was decided on; nothing was written. ``task`` is what is stored."""

    task: Task | None


class Refused(Struct, frozen=True, kw_only=True):
    """A requirement does not hold; nothing was written. ``task`` is what is stored."""

    requirement: Requirement
    task: Task | None


class Broken(Struct, frozen=True):
    """The step stopped half-way, in an order that makes every half harmless; repeat it with the same token."""

    reason: str


class KeyTaken(Struct, frozen=True, kw_only=True):
    """The idempotency key has a record; nothing was written. ``text`` is the record as stored, for a takeover.

    ``record`` is None where what is stored cannot be read, for somebody else wrote it.
    """

    record: IdempotencyRecord | None
    text: str


class Full(Struct, frozen=True, kw_only=True):
    """A limit is reached; nothing was written."""

    reason: LimitName
    value: int
    limit: int


class Admission(Struct, frozen=True, kw_only=True):
    """A submission to be created. ``replaces`` is the text of an orphaned idempotency record that it takes over."""

    change: Change
    replaces: str | None = None


CommitAnswer = Applied | Already | Conflict | Refused | Broken
CreateAnswer = Applied | Already | Conflict | Broken | KeyTaken | Full


class PartlyAnswered(OutcomeUnknown):
    """Some of a call's items were answered before the broker failed.

    ``answers`` has one for each item: its own answer, or in place of that what kept it from being given.
    """

    def __init__(self, answers: Sequence[Any]) -> None:
        super().__init__("the broker failed half-way through several requests")
        self.answers = answers
