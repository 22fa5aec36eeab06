"""The least that a broker does: keep one task, give new entries their ids, and compare what a change requires."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Acknowledge, Drop
from dtq.domain.status import Place
from dtq.domain.task import EntryId, LeaseToken, Receipt, Task, Version, WorkerId, place_of
from tests.domain.factories import BEGIN

Decide = Callable[[Task, datetime, Version], Change | Acknowledge | Drop]


class Shelf:
    """One task as a broker would store it, with everything that was decided about it."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.task: Task | None = None
        self.owner: WorkerId | None = None
        self.delivered = False
        self.changes: list[Change] = []
        self._numbers = count(1)

    @property
    def stored(self) -> Task:
        assert self.task is not None
        return self.task

    def token(self) -> Version:
        return Version(f"token-{next(self._numbers)}")

    def lease(self) -> LeaseToken:
        return LeaseToken(f"lease-{next(self._numbers)}")

    def wait(self, duration: timedelta) -> None:
        self.now += duration

    def deliver(self, worker: WorkerId) -> Receipt | None:
        """Let *worker* own the task's entry, as a fetch or a reaping fetch does."""
        receipt = self.stored.receipt
        if receipt is not None:
            self.owner = worker
            self.delivered = True
        return receipt

    def act(self, decide: Decide) -> Change | Acknowledge | Drop:
        """Decide about the task as it is stored, and make the change if what it requires holds."""
        decision = decide(self.stored, self.now, self.token())
        if isinstance(decision, Change):
            self.commit(decision)
        return decision

    def commit(self, change: Change) -> bool:
        if change.stored != self.task or not all(self._holds(needed, change) for needed in change.requires):
            return False
        self.task = self._placed(change)
        self.changes.append(replace(change, after=self.task))
        return True

    def _holds(self, requirement: Requirement, change: Change) -> bool:
        match requirement:
            case Requirement.HELD:
                return change.holder == self.owner
            case Requirement.UNPAUSED:
                return True
            case Requirement.IN_DEAD_LETTERS:
                return place_of(self.task) is Place.DEAD
            case Requirement.UNDELIVERED:
                return not self.delivered
            case Requirement.HOMELESS:
                return False

    def _placed(self, change: Change) -> Task:
        after = change.after
        match place_of(after):
            case Place.READY | Place.HELD if after.entry_id is None:
                self.owner, self.delivered = None, False
                return replace(after, entry_id=EntryId(f"{next(self._numbers)}-0"))
            case Place.DEAD if after.dlq_entry_id is None:
                return replace(after, dlq_entry_id=EntryId(f"{next(self._numbers)}-0"))
            case _:
                return after
