"""What one run leaves behind: everything that was seen, in order, for the checkers to judge."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from dtq.application.fan_out_tap import Message
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.retry import RetryPolicy
from dtq.domain.task import EntryId, QueueName, Task, TaskId, WorkerId


class PortCall(Struct, frozen=True):
    """One request that the broker carried out, or the fault of one."""

    at: float
    who: str
    method: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    answer: object

    def __str__(self) -> str:
        given = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.named.items())]
        return f"{self.at:.6f} {self.who} {self.method}({', '.join(given)}) -> {self.answer!r}"


class TripMade(Struct):
    """One request that somebody made, and when they learnt that it was refused, if they did."""

    at: float
    who: str
    method: str
    refused_at: float | None = None

    def may_be_sent(self, at: float) -> bool:
        """Tell whether it may have reached the server, for all that who made it can know by then."""
        return self.refused_at is None or self.refused_at > at


class Life(Struct, kw_only=True):
    """One worker process, from its beginning to its end or to when it is asked for that."""

    at: float
    who: str
    worker_id: WorkerId
    queue: QueueName
    concurrency: int
    leaves_at: float = float("inf")
    """From when on it takes no more work."""


class Homes(Struct, frozen=True, kw_only=True):
    """In how many places of each kind a task is."""

    scheduled: int
    entries: int
    letters: int


class Step(Struct, frozen=True, kw_only=True):
    """One change of a stored task, as the broker saw it."""

    at: float
    clock: datetime
    """The latest time that anybody could take it to be, by the broker's clock."""
    who: str
    before: Task | None
    after: Task
    homes: Homes
    owner: WorkerId | None
    """Who owned the entry that the task had before."""

    def __str__(self) -> str:
        was = "nothing" if self.before is None else self.before.status
        return (
            f"{self.at:.6f} {self.who} {self.after.task_id}: {was} -> {self.after.status},"
            f" attempt {self.after.attempt}, worker {self.after.worker_id}, due {self.after.available_at.isoformat()}"
        )


class Sweep(Struct, frozen=True, kw_only=True):
    """What one fetch brought, and what it left behind in higher priorities that it should have brought first."""

    at: float
    who: str
    taken: tuple[int, ...]
    left: tuple[int, ...]


class Execution(Struct, kw_only=True):
    """One run of a handler: its effect on the world outside the broker."""

    at: float
    who: str
    task_id: TaskId
    number: int
    attempt: int
    kind: str
    """What the handler was told to do."""
    ended_at: float | None = None
    outcome: str = ""
    """What the handler ended with: ``ok``, or the name of an error; empty where it was never heard of again."""

    def __str__(self) -> str:
        ended = "never ended" if self.ended_at is None else f"{self.outcome} at {self.ended_at:.6f}"
        return f"{self.at:.6f} {self.who} runs {self.task_id} (number {self.number}, attempt {self.attempt}): {ended}"


class Submission(Struct, kw_only=True, eq=False):
    """One request of a client to submit, and its answer: ``created``, ``duplicate``, or the name of an error.

    It is ``Crashed`` where its client ended before it heard of one.
    """

    at: float
    who: str
    number: int
    queue: QueueName
    key: str | None
    delay: timedelta
    answer: str = ""
    task_id: TaskId | None = None
    ended_at: float | None = None

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.who} submits {self.number} under {self.key}: {self.answer} {self.task_id}"


class Deed(Struct, kw_only=True, eq=False):
    """One other request of a client, and its answer: ``done``, ``Crashed``, or the name of an error."""

    at: float
    who: str
    what: str
    about: str
    answer: str = ""
    status: str = ""
    ended_at: float | None = None

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.who} {self.what} {self.about}: {self.answer} {self.status}"


class Fault(Struct, frozen=True):
    """What was done to the system."""

    at: float
    what: str
    whom: str

    def __str__(self) -> str:
        return f"{self.at:.6f} FAULT {self.what} {self.whom}"


class Exit(Struct, frozen=True):
    """How a worker ended by itself: the name of an exit code or of an error."""

    at: float
    who: str
    how: str

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.who} exits: {self.how}"


class Notice(Struct, frozen=True):
    """What a process told its operators."""

    at: float
    who: str
    what: str
    details: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.at:.6f} {self.who} notices {self.what} {dict(self.details)}"


class Watch(Struct, kw_only=True):
    """What one watcher was sent while it listened."""

    who: str
    since: float = float("inf")
    until: float = float("inf")
    ending: str = ""
    heard: list[tuple[float, Message]] = field(default_factory=list)


class Entry(Struct, frozen=True):
    """One entry of a stream that is left."""

    queue: QueueName
    priority: int
    entry_id: EntryId
    task_id: str
    owner: WorkerId | None


class Remains(Struct, frozen=True, kw_only=True):
    """What the broker holds when all is over."""

    tasks: Mapping[TaskId, Task]
    schedule: Sequence[TaskId]
    entries: Sequence[Entry]
    letters: Mapping[EntryId, str]
    results: Mapping[TaskId, str]
    keys: Mapping[tuple[QueueName, str], IdempotencyRecord]
    sizes: Mapping[str, tuple[int, int]]
    """How large each structure is that must be bounded, and its bound."""
    stats: Mapping[QueueName, tuple[int, int, int]]
    """The depth, the pending and the scheduled of each queue, as the port tells them."""


class Terms(Struct, frozen=True, kw_only=True):
    """What was agreed on at the beginning."""

    seed: int
    is_within_promise: bool
    is_calm: bool
    concurrency: int
    retry: RetryPolicy
    visibility: timedelta = timedelta(seconds=30)
    """After how long a silence a worker counts as lost."""
    recovery: float
    """Within how many seconds after the last fault everything must have ended."""


class History(Struct, kw_only=True):
    """One run."""

    terms: Terms
    calls: list[PortCall] = field(default_factory=list)
    trips: list[TripMade] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    submissions: list[Submission] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """The workers that did not end when they were asked to."""
    notices: list[Notice] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    purged_letters: set[TaskId] = field(default_factory=set)
    halved: set[TaskId] = field(default_factory=set)
    """The tasks of steps that stopped half-way, of which perhaps no record was written."""
    told: dict[str, int] = field(default_factory=dict)
    """How often observers were told of the step of each token."""
    wiped_at: float | None = None
    healed_at: float = 0.0
    quiet_at: float | None = None
    remains: Remains | None = None

    def lines(self) -> list[str]:
        """Everything as text, in the order of time: two runs of one seed give the same."""
        parts: Sequence[Sequence[Any]] = (
            self.calls,
            self.steps,
            self.executions,
            self.submissions,
            self.deeds,
            self.faults,
            self.exits,
            self.notices,
            [f"{at:.6f} {watch.who} hears {message!r}" for watch in self.watches for at, message in watch.heard],
        )
        told = [str(one) for part in parts for one in part]
        return sorted(told, key=lambda line: float(line.split(" ", 1)[0]))
