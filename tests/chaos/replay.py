"""The state of a broker, followed command by command; after each block it tells which steps and sweeps that was."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from dtq.adapters.redis.codec import SNAPSHOT, task_of
from dtq.adapters.redis.keys import BANDS, Keyspace
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, WorkerId
from tests.chaos.aof import Block, entry_added, leaves_nothing
from tests.simulation.checkers.finding import is_start
from tests.simulation.history import Homes, Step, Sweep

API: Final = "api"
"""Who makes a step that no worker makes."""

WAITED: Final = timedelta(seconds=0.5)
"""Whatever has waited for longer, and has a higher priority, is taken first."""

_ROUNDING: Final = timedelta(milliseconds=1)


class Stream(Struct):
    """A stream with its one group."""

    entries: dict[str, str] = field(default_factory=dict)
    """The task of each entry."""
    fresh: set[str] = field(default_factory=set)
    """The entries that nobody has read."""
    held: dict[str, str] = field(default_factory=dict)
    """Who owns each entry that was read."""


class Replay:
    """Follows a broker of one key prefix; times are seconds since *begin*."""

    def __init__(self, keys: Keyspace, *, begin: float) -> None:
        self.keys = keys
        self.begin = begin
        self.steps: list[Step] = []
        self.tasks: dict[str, Task] = {}
        self.streams: dict[str, Stream] = {name: Stream() for name in keys.streams(DEFAULT_QUEUE)}
        self.letters: dict[str, str] = {}
        self.schedule: set[str] = set()
        self.claimed: set[str] = set()
        self.counters: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.wiped_at: float | None = None
        self._records: dict[str, dict[str, str]] = {}
        self._entries_of: Counter[str] = Counter()
        self._letters_of: Counter[str] = Counter()
        self._touched: dict[str, None] = {}
        self._owners: dict[str, str | None] = {}
        self._added_at: dict[str, datetime] = {}
        self._taken: dict[str, list[int]] = {}
        self._are_read: bool = False

    def follow(self, block: Block) -> Iterator[Step | Sweep]:
        """Carry a block out, and tell what it was."""
        self._touched.clear()
        self._owners.clear()
        self._added_at.clear()
        self._taken.clear()
        self._are_read = False
        for command in block.commands:
            if not leaves_nothing(command):
                self._carry_out(command, block)
        since = block.since - self.begin
        yield from self._sweeps(since)
        for task_id in list(self._touched):
            step = self._step(task_id, since)
            if step is not None:
                yield step

    def _step(self, task_id: str, since: float) -> Step | None:
        before = self.tasks.get(task_id)
        fields = self._records.get(task_id)
        if fields is None:
            self.tasks.pop(task_id, None)
            return None
        values = [fields.get(name) for name in SNAPSHOT]
        after = task_of(values, task_id=task_id, payload=fields.get("payload"))
        if after is None or (before is not None and after.version == before.version):
            return None
        self.tasks[task_id] = after
        clock = self._clock(before, after)
        at = max(since, clock.timestamp() - self.begin)
        step = Step(
            at=at,
            clock=clock + _ROUNDING,
            who=_doer(before, after),
            before=before,
            after=after,
            homes=Homes(
                scheduled=(task_id in self.schedule) + (task_id in self.claimed),
                entries=self._entries_of[task_id],
                letters=self._letters_of[task_id],
            ),
            owner=None,
        )
        owner = self._owner_of(after) if is_start(step) else self._owners.get(task_id)
        return step if owner is None else replace(step, owner=WorkerId(owner))

    def _clock(self, before: Task | None, after: Task) -> datetime:
        """When a step was made: by the server's clock where an entry was added, else as the record has it."""
        added = self._added_at.get(after.task_id)
        if added is not None:
            return added
        if before is None:
            return after.created_at
        if after.status is TaskStatus.RUNNING and after.started_at is not None:
            return after.started_at
        return after.finished_at or after.created_at

    def _sweeps(self, since: float) -> Iterator[Sweep]:
        """Tell what was read. The blocking read takes one entry a band, so that only what has waited counts as left."""
        if not self._are_read:
            return
        block_at = datetime.fromtimestamp(self.begin + since, tz=UTC)
        for who, taken in self._taken.items():
            left = [
                priority
                for priority, name in zip(BANDS, self.keys.streams(DEFAULT_QUEUE), strict=True)
                if priority > min(taken) and any(_age_of(one, at=block_at) > WAITED for one in self.streams[name].fresh)
            ]
            yield Sweep(at=since, who=who, taken=tuple(taken), left=tuple(left))

    def _carry_out(self, command: Sequence[str], block: Block) -> None:
        name = command[0].upper()
        key = command[1] if len(command) > 1 else ""
        if name in {"FLUSHALL", "FLUSHDB"}:
            self._wipe(block)
        elif key.startswith(self.keys.task_prefix):
            self._record(name, key.removeprefix(self.keys.task_prefix), command)
        elif key in self.streams or (name == "XGROUP" and command[2] in self.streams):
            self._stream(name, command)
        elif key == self.keys.dead_letters:
            self._letter(name, command)
        elif key in {self.keys.schedule, self.keys.claimed}:
            self._sorted_set(name, key, command)
        elif name == "INCRBY":
            self.counters[key] += int(command[2])
        elif name in {"DEL", "UNLINK"}:
            for one in command[1:]:
                if one.startswith(self.keys.task_prefix):
                    self._record("DEL", one.removeprefix(self.keys.task_prefix), ["DEL", one])

    def _wipe(self, block: Block) -> None:
        self.wiped_at = block.since - self.begin
        self.streams = {name: Stream() for name in self.keys.streams(DEFAULT_QUEUE)}
        for one in (self.tasks, self.letters, self._records, self._entries_of, self._letters_of):
            one.clear()
        self.schedule.clear()
        self.claimed.clear()

    def _record(self, name: str, task_id: str, command: Sequence[str]) -> None:
        match name:
            case "HSET" | "HMSET":
                fields = self._records.setdefault(task_id, {})
                fields.update(zip(command[2::2], command[3::2], strict=True))
                self._touched[task_id] = None
            case "HDEL":
                for one in command[2:]:
                    self._records.get(task_id, {}).pop(one, None)
                self._touched[task_id] = None
            case "DEL" | "UNLINK":
                self._records.pop(task_id, None)
                self._touched[task_id] = None
            case "PEXPIREAT" | "PEXPIRE":
                pass
            case _:
                self.unknown[name] += 1

    def _stream(self, name: str, command: Sequence[str]) -> None:
        if name == "XGROUP":
            self._group(command)
            return
        stream = self.streams[command[1]]
        match name:
            case "XADD":
                entry_id, fields = entry_added(command)
                task_id = fields.get("task_id", "")
                stream.entries[entry_id] = task_id
                stream.fresh.add(entry_id)
                self._entries_of[task_id] += 1
                self._added_at[task_id] = _moment_of(entry_id)
            case "XDEL":
                for entry_id in command[2:]:
                    task_id = stream.entries.pop(entry_id, "")
                    stream.fresh.discard(entry_id)
                    if task_id:
                        self._entries_of[task_id] -= 1
                        self._owners.setdefault(task_id, stream.held.get(entry_id))
            case "XACK":
                for entry_id in command[3:]:
                    task_id = stream.entries.get(entry_id, "")
                    if task_id:
                        self._owners.setdefault(task_id, stream.held.get(entry_id))
                    stream.held.pop(entry_id, None)
            case "XCLAIM":
                self._claim(stream, command)
            case _:
                self.unknown[name] += 1

    def _claim(self, stream: Stream, command: Sequence[str]) -> None:
        consumer, entry_id = command[3], command[5]
        task_id = stream.entries.get(entry_id)
        if task_id is None:
            # claiming what was deleted takes it off the list
            stream.held.pop(entry_id, None)
            return
        if stream.held.get(entry_id) != consumer:
            self._taken.setdefault(consumer, []).append(int(command[1][-1]))
        if entry_id in stream.fresh:
            stream.fresh.discard(entry_id)
            self._are_read = True
        stream.held[entry_id] = consumer

    def _group(self, command: Sequence[str]) -> None:
        stream = self.streams[command[2]]
        match command[1].upper():
            case "DELCONSUMER":
                for entry_id in [one for one, owner in stream.held.items() if owner == command[4]]:
                    del stream.held[entry_id]
            case "CREATE" | "CREATECONSUMER" | "SETID":
                pass
            case other:
                self.unknown[f"XGROUP {other}"] += 1

    def _letter(self, name: str, command: Sequence[str]) -> None:
        match name:
            case "XADD":
                entry_id, fields = entry_added(command)
                self.letters[entry_id] = fields.get("task_id", "")
                self._letters_of[self.letters[entry_id]] += 1
            case "XDEL":
                for entry_id in command[2:]:
                    self._letters_of[self.letters.pop(entry_id, "")] -= 1
            case _:
                self.unknown[name] += 1

    def _sorted_set(self, name: str, key: str, command: Sequence[str]) -> None:
        members = self.schedule if key == self.keys.schedule else self.claimed
        match name:
            case "ZADD":
                first = next(number for number, word in enumerate(command[2:], start=2) if _is_number(word))
                members.update(command[first + 1 :: 2])
            case "ZREM":
                members.difference_update(command[2:])
            case "DEL":
                members.clear()
            case _:
                self.unknown[name] += 1

    def _owner_of(self, task: Task) -> str | None:
        """Who owns the entry that a task's record names."""
        if task.entry_id is None:
            return None
        return self.streams[self.keys.stream(task.queue, task.priority)].held.get(task.entry_id)


def _age_of(entry_id: str, *, at: datetime) -> timedelta:
    return at - _moment_of(entry_id)


def _doer(before: Task | None, after: Task) -> str:
    if after.status is TaskStatus.RUNNING and after.lease != (before.lease if before else None):
        return after.worker_id or API
    if before is not None and before.status is TaskStatus.RUNNING and after.status is not TaskStatus.RUNNING:
        return before.worker_id or API
    return API


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).replace("e+", "", 1).lstrip("-").isdigit()


def _moment_of(entry_id: str) -> datetime:
    return datetime.fromtimestamp(int(entry_id.partition("-")[0]) / 1000, tz=UTC)
