"""What a broker must look like after each call: the pure model that adapters are compared with, one queue wide."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.idempotency import IdempotencyRecord, record_of
from dtq.domain.status import Place
from dtq.domain.task import NO_VERSION, EntryId, Receipt, Task, TaskId, Version, WorkerId, place_of
from dtq.ports.answers import TOKENS_REMEMBERED, Already, Applied, Conflict, Refused

BANDS = range(9, -1, -1)
_IN_STREAM = frozenset({Place.READY, Place.HELD})


class Entry(Struct):
    """A stream entry: whose task it is, who owns it, and when the model's time last saw its owner."""

    task_id: TaskId
    owner: WorkerId | None = None
    seen: timedelta | None = None


class Slot(Struct):
    """A scheduled task: when it is due, and when it was taken on loan."""

    due: datetime
    claimed_at: datetime | None = None


class Model:
    """Tasks and where they are. Time is only what `pass_time` was told."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, Task] = {}
        self.tokens: dict[TaskId, list[Version]] = {}
        self.entries: dict[Receipt, Entry] = {}
        self.slots: dict[TaskId, Slot] = {}
        self.letters: dict[EntryId, TaskId] = {}
        self.keys: dict[str, IdempotencyRecord] = {}
        self.results: dict[TaskId, str] = {}
        self.is_paused = False
        self._time = timedelta()

    def pass_time(self, by: timedelta) -> None:
        self._time += by

    def answer(self, change: Change) -> type:
        """Say how a commit of *change* must be answered now."""
        task_id = change.after.task_id
        task = self.tasks.get(task_id)
        if task is not None and change.after.version in self.tokens[task_id]:
            return Already
        if (task.version if task else NO_VERSION) != (change.stored.version if change.stored else NO_VERSION):
            return Conflict
        return Applied if all(self._is_met(change, one) for one in change.requires) else Refused

    def _is_met(self, change: Change, requirement: Requirement) -> bool:
        task = change.before or change.after
        entry = None if task.receipt is None else self.entries.get(task.receipt)
        match requirement:
            case Requirement.HELD:
                return entry is not None and entry.owner == change.holder
            case Requirement.UNPAUSED:
                return not self.is_paused
            case Requirement.IN_DEAD_LETTERS:
                return task.dlq_entry_id in self.letters
            case Requirement.UNDELIVERED:
                return entry is None or entry.owner is None
            case Requirement.HOMELESS:
                return not self.holds(task)

    def holds(self, task: Task) -> bool:
        """Tell whether a task is where its status says."""
        match place_of(task):
            case Place.SCHEDULE:
                return task.task_id in self.slots
            case Place.READY | Place.HELD:
                return task.receipt in self.entries
            case Place.DEAD:
                return task.dlq_entry_id in self.letters
            case Place.NOWHERE:
                return True

    def apply(self, change: Change, stored: Task) -> None:
        """Make *change* real; of *stored*, which the broker answered, only the ids of new entries are believed."""
        after, place = self._entered(change, stored), place_of(change.after)
        self._leave(change, after)
        if place is Place.SCHEDULE:
            self.slots[after.task_id] = Slot(due=after.available_at)
        if change.result is not None:
            self.results[after.task_id] = change.result
        self._write_key(change)
        self.tasks[after.task_id] = after
        self.tokens[after.task_id] = [*self.tokens.get(after.task_id, []), after.version][-TOKENS_REMEMBERED:]

    def _entered(self, change: Change, stored: Task) -> Task:
        after = change.after
        before = self.tasks.get(after.task_id)
        if after.payload is None and before is not None:
            after = replace(after, payload=before.payload)
        if place_of(after) in _IN_STREAM and after.entry_id is None:
            after = replace(after, entry_id=stored.entry_id)
            assert after.receipt is not None
            assert after.receipt not in self.entries
            self.entries[after.receipt] = Entry(after.task_id)
        if place_of(after) is Place.DEAD and after.dlq_entry_id is None:
            after = replace(after, dlq_entry_id=stored.dlq_entry_id)
            assert after.dlq_entry_id is not None
            self.letters[after.dlq_entry_id] = after.task_id
        return after

    def _leave(self, change: Change, after: Task) -> None:
        before = change.before
        if before is None:
            return
        if place_of(before) is Place.SCHEDULE and place_of(after) is not Place.SCHEDULE:
            self.slots.pop(before.task_id, None)
        if before.receipt is not None and before.receipt != after.receipt:
            self.entries.pop(before.receipt, None)
        if before.dlq_entry_id is not None and before.dlq_entry_id != after.dlq_entry_id:
            self.letters.pop(before.dlq_entry_id, None)

    def _write_key(self, change: Change) -> None:
        record, key = record_of(change), change.after.idempotency_key
        if record is None or key is None:
            return
        holder = self.keys.get(key)
        is_new = change.starts_life or (change.may_bind_key and holder is None)
        if is_new or (holder is not None and holder.task_id == record.task_id):
            self.keys[key] = record

    def fetch(self, worker: WorkerId, *, limit: int, reap_idle: timedelta | None) -> list[Receipt]:
        """Let *worker* take entries, and say which."""
        taken: list[Receipt] = []
        for priority in BANDS if not self.is_paused else ():
            band = [receipt for receipt in self.ordered() if receipt.priority == priority]
            idle = [receipt for receipt in band if reap_idle is not None and self._is_idle(receipt, reap_idle)]
            fresh = [receipt for receipt in band if self.entries[receipt].owner is None]
            taken += [*idle, *fresh][: limit - len(taken)]
        for receipt in taken:
            self.touch(receipt, worker)
        return taken

    def _is_idle(self, receipt: Receipt, idle: timedelta) -> bool:
        entry = self.entries[receipt]
        return entry.owner is not None and (entry.seen is None or self._time - entry.seen >= idle)

    def ordered(self) -> list[Receipt]:
        """Return every entry, oldest first, highest priority first."""
        return sorted(self.entries, key=lambda receipt: (-receipt.priority, _position(receipt.entry_id)))

    def touch(self, receipt: Receipt, worker: WorkerId) -> None:
        """Make *worker* the owner of an entry, heard of just now."""
        self.entries[receipt].owner = worker
        self.entries[receipt].seen = self._time

    def release(self, receipts: Iterable[Receipt], worker: WorkerId) -> int:
        """Let entries look long abandoned."""
        mine = [one for one in receipts if one in self.entries and self.entries[one].owner == worker]
        for receipt in mine:
            self.entries[receipt].seen = None
        return len(mine)

    def add_entry(self, receipt: Receipt, task_id: TaskId) -> None:
        """Let a second entry of a task appear."""
        self.entries[receipt] = Entry(task_id)

    def orphan(self, task: Task) -> None:
        """Take a task out of its place."""
        self.slots.pop(task.task_id, None)
        if task.receipt is not None:
            self.entries.pop(task.receipt, None)
        if task.dlq_entry_id is not None:
            self.letters.pop(task.dlq_entry_id, None)

    def lose_owners(self) -> None:
        """Let every entry be unread again."""
        self.entries = {receipt: Entry(entry.task_id) for receipt, entry in self.entries.items()}

    def take_due(self, *, now: datetime, limit: int) -> list[TaskId]:
        """Take on loan what is due."""
        due = sorted((slot.due, task_id) for task_id, slot in self.slots.items() if slot.claimed_at is None)
        taken = [task_id for moment, task_id in due if moment <= now][:limit]
        for task_id in taken:
            self.slots[task_id].claimed_at = now
        return taken

    def return_stale(self, *, claimed_before: datetime, now: datetime) -> int:
        """Put back what was taken before a moment."""
        stale = [slot for slot in self.slots.values() if slot.claimed_at and slot.claimed_at < claimed_before]
        for slot in stale:
            slot.due, slot.claimed_at = now, None
        return len(stale)

    def census(self) -> Mapping[Place, set[TaskId]]:
        """Tell which tasks each structure holds."""
        return {
            Place.SCHEDULE: set(self.slots),
            Place.READY: {entry.task_id for entry in self.entries.values() if entry.owner is None},
            Place.HELD: {entry.task_id for entry in self.entries.values() if entry.owner is not None},
            Place.DEAD: set(self.letters.values()),
            Place.NOWHERE: set(),
        }


def _position(entry_id: EntryId) -> tuple[int, int]:
    moment, _, number = entry_id.partition("-")
    return int(moment), int(number)
