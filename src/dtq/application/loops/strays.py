"""Tasks that foul play has left without a place get one again."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from dtq.application.group_commit import GroupCommit
from dtq.application.transact import Settled, transact
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.lifecycle import rehome
from dtq.domain.task import Task, TaskId, Version
from dtq.ports.answers import CommitAnswer
from dtq.ports.broker import TaskStore
from dtq.ports.environment import Clock, Ids
from dtq.ports.events import Observer
from dtq.ports.queues import Upkeep

SECOND_LOOK: Final = timedelta(seconds=5)
"""How long a task must have been without a place before it is believed."""

_PASS: Final = timedelta(minutes=2)
"""How long one look at all stored tasks takes at least; with a batch each half second, it is as slow as it must be."""

_BATCH: Final = 500
_MAX_SUSPECTS: Final = 1_000


class Suspect(Struct, frozen=True):
    """A task that was seen without a place, as it was then."""

    version: Version
    seen_at: float


class Strays:
    """Scans all stored tasks, a batch a step, and looks twice at those that seem to be nowhere."""

    def __init__(
        self,
        upkeep: Upkeep,
        *,
        store: TaskStore,
        commits: GroupCommit[Change, CommitAnswer],
        clock: Clock,
        ids: Ids,
        observer: Observer,
    ) -> None:
        self._upkeep = upkeep
        self._store = store
        self._commits = commits
        self._clock = clock
        self._ids = ids
        self._observer = observer
        self._cursor = ""
        self._next_pass_at = float("-inf")
        self._suspects: dict[TaskId, Suspect] = {}

    async def step(self) -> None:
        """Look at the next batch, and again at what was suspicious some seconds ago."""
        await self._scan()
        now = self._clock.monotonic()
        for task_id, suspect in list(self._suspects.items()):
            if now - suspect.seen_at >= SECOND_LOOK.total_seconds():
                # one that cannot be helped is not to keep the others waiting: the next pass finds it again
                del self._suspects[task_id]
                await self._look_again(task_id, suspect)

    async def _scan(self) -> None:
        now = self._clock.monotonic()
        if not self._cursor:
            if now < self._next_pass_at:
                return
            self._next_pass_at = now + _PASS.total_seconds()
        self._cursor, strays = await self._upkeep.strays(self._cursor, limit=_BATCH)
        for task in strays[: _MAX_SUSPECTS - len(self._suspects)]:
            self._suspects.setdefault(task.task_id, Suspect(task.version, now))

    async def _look_again(self, task_id: TaskId, suspect: Suspect) -> None:
        task = await self._store.load(task_id)
        if task is None:
            return

        def decide(found: Task) -> Change | Drop:
            if found.version != suspect.version:
                return Drop(DropReason.MOVED)
            return rehome(found, now=self._clock.now(), token=self._ids.token())

        answer = await transact(task, decide=decide, commit=self._commits.one)
        if isinstance(answer, Settled):
            self._observer.committed(answer.change)
            self._observer.noticed("task_rehomed", task_id=task_id, status=task.status)
