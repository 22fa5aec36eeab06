"""The broker's side: the memory adapter on a clock that can be set, which remembers whatever it is asked."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.adapters.memory import State, backend_of
from dtq.adapters.memory.expiring import Expiring
from dtq.adapters.memory.streams import Stream
from dtq.domain.change import Change
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Receipt, Task, TaskId, WorkerId
from dtq.ports.answers import Admission, Broken
from dtq.ports.backend import Backend, BackendOptions
from dtq.ports.broker import Fetch
from tests.application.link import PORTS
from tests.simulation.history import History, Homes, PortCall, Step, Sweep
from tests.simulation.loop import Actor, Call, VirtualLoop

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT: Final = 0.000_001
"""Nothing waits for less: rounding must not let a loop turn for ever in one moment."""


class HostClock:
    """The clock of a host: the loop's own time, by which it is *ahead* of which no more depends than what it shows."""

    def __init__(self, loop: VirtualLoop, *, ahead: float = 0.0) -> None:
        self._loop = loop
        self.ahead = ahead

    def now(self) -> datetime:
        moment = EPOCH + timedelta(seconds=self.monotonic() + self.ahead)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, duration: timedelta) -> None:
        woken = self._loop.create_future()
        call = self.call_later(duration, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            call.cancel()

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> Call:
        return self._loop.call_later(max(delay.total_seconds(), MOMENT), callback)


class ServerClock(HostClock):
    """The broker's clock, which somebody may set; what the broker measures by it jumps along, as in Redis."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(loop)
        self.shift = 0.0
        self._highest_shift = 0.0

    def latest(self) -> datetime:
        """The latest time that anybody may take it to be: some may not have heard yet that it was set back."""
        return EPOCH + timedelta(seconds=self._loop.time() + self._highest_shift)

    def monotonic(self) -> float:
        return self._loop.time() + self.shift

    def step(self, seconds: float) -> None:
        """Set the clock ahead, or back."""
        self.shift += seconds
        self._highest_shift = max(self._highest_shift, self.shift)


class Trap(Struct, eq=False):
    """What happens to whoever is the next to get something by a call of *method*, as soon as that is carried out.

    It springs *times* times.
    """

    method: str
    spring: Callable[[str], None]
    times: int = 1


class Server:
    """One broker. *history* is told of every request and of every step of a task."""

    def __init__(self, loop: VirtualLoop, *, history: History) -> None:
        self.loop = loop
        self.actor = Actor("server")
        self.clock = ServerClock(loop)
        self.state = State(self.clock, options=BackendOptions())
        self.history = history
        self.downs = 0
        self.stops_next_commit_after: int | None = None
        """How many writes the next commit gets done before it stops half-way."""
        self.traps: list[Trap] = []
        self.unaware: list[Callable[[], None]] = []
        """What tells those who have sent something while nobody was there, once somebody is: TCP resets them then."""
        self.leader = ""
        """Who was the last to be given the lead."""
        self._backend = backend_of(self.state)
        self._ports = {name: getattr(self._backend, name) for name in PORTS}

    def seen_by(self, who: str) -> Backend:
        """The ports, whose calls are remembered as those of *who*."""
        return replace(self._backend, **{name: Observed(name, server=self, who=who) for name in PORTS})

    def port(self, name: str) -> Any:
        """The port of this name, as it is now."""
        return self._ports[name]

    @property
    def is_down(self) -> bool:
        """Whether nobody answers."""
        return self.downs > 0

    def known_workers(self) -> list[WorkerId]:
        """The ids of the workers that have begun and were not forgotten."""
        asking = self.port("workers").known()
        try:
            asking.send(None)
        except StopIteration as done:
            return list(done.value)
        raise AssertionError("a call of the memory adapter is one step")

    def restart(self) -> None:
        """Begin to be up, with all that was stored, as a server that writes everything to its disk."""
        self.downs -= 1
        unaware, self.unaware = self.unaware, []
        for tell in unaware:
            tell()
        self.state.started_at = self.clock.monotonic()

    def wipe(self) -> None:
        """Forget everything that is stored, as FLUSHALL does."""
        state = self.state
        state.records, state.results, state.keys = Expiring(self.clock), Expiring(self.clock), Expiring(self.clock)
        state.marks, state.letters, state.lead = Expiring(self.clock), Stream(), None
        for forgotten in (state.queues, state.known, state.paused, state.schedule, state.recent, state.audit):
            forgotten.clear()
        self._ports["workers"] = backend_of(state).workers

    async def carry_out(self, name: str, method: str, who: str, arguments: tuple[Any, ...], named: Any) -> object:
        """Make one call of a port, and remember it."""
        # a set has no order, and what has no order must not decide about anything here
        arguments = tuple(map(_in_order, arguments))
        named = {key: _in_order(value) for key, value in named.items()}
        ends: Sequence[Change] = named.get("after", ())
        stored = self._stored_before(method, arguments, ends)
        owners = {task_id: self._owner_of(task) for task_id, task in stored.items()}
        waiting = self._waiting_in(arguments[0]) if named.get("offers") else {}
        call = getattr(self.port(name), method)
        if method == "commit" or ends:
            self.state.faults.writes_left, self.stops_next_commit_after = self.stops_next_commit_after, None
        try:
            answer: object = await call(*arguments, **named)
        except Exception as error:
            self._note_call(who, method, arguments, named, error)
            raise
        if ends and isinstance(answer, Fetch):
            self._note_call(who, "commit", (ends,), {}, answer.answers)
        self._note_call(who, method, arguments, named, answer)
        made = answer.answers if isinstance(answer, Fetch) else answer
        if isinstance(made, list) and any(isinstance(one, Broken) for one in made):
            self.history.halved.update(stored)
        for task_id, before in stored.items():
            self._note_step(who, task_id, before, owners[task_id])
        self._note_starts(who, waiting, answer, worker=named.get("worker"))
        for trap in [trap for trap in self.traps if _is_sprung(trap, method, answer)]:
            trap.times -= 1
            if not trap.times:
                self.traps.remove(trap)
            trap.spring(who)
        if isinstance(answer, Fetch):
            self._note_sweep(who, arguments[0], answer)
        if method == "acquire" and answer is True:
            self.leader = who
        return answer

    def _note_call(self, who: str, method: str, arguments: tuple[Any, ...], named: Any, answer: object) -> None:
        told = f"{type(answer).__name__}: {answer}" if isinstance(answer, Exception) else answer
        self.history.calls.append(PortCall(self.loop.time(), who, method, arguments, named, told))

    def _stored_before(
        self, method: str, arguments: tuple[Any, ...], ends: Sequence[Change]
    ) -> dict[TaskId, Task | None]:
        if method == "purge":
            letters = self.state.letters.entries.values()
            self.history.purged_letters.update(TaskId(fields.get("task_id", "")) for fields in letters)
        items: Collection[Admission | Change] = arguments[0] if method in {"create", "commit"} else ends
        changes = [one.change if isinstance(one, Admission) else one for one in items]
        return {change.after.task_id: self.state.task(change.after.task_id) for change in changes}

    def _note_step(self, who: str, task_id: TaskId, before: Task | None, owner: WorkerId | None) -> None:
        after = self.state.task(task_id)
        if after is None or after is before:
            return
        step = Step(
            at=self.loop.time(),
            clock=self.clock.latest(),
            who=who,
            before=before,
            after=after,
            homes=self.homes_of(after),
            owner=owner,
        )
        self.history.steps.append(step)

    def _waiting_in(self, queue: QueueName) -> dict[TaskId, Task | None]:
        streams = self.state.queue(queue).bands.values()
        ids = [TaskId(fields.get("task_id", "")) for stream in streams for fields in stream.entries.values()]
        return {task_id: self.state.task(task_id) for task_id in ids}

    def _note_starts(
        self, who: str, waiting: dict[TaskId, Task | None], answer: object, *, worker: WorkerId | None
    ) -> None:
        """Take note of what a fetch has started of what was waiting; one that it does not tell of was cut half-way."""
        told = answer.deliveries if isinstance(answer, Fetch) else ()
        started = {one.started.after.task_id for one in told if one.started is not None}
        for task_id, before in waiting.items():
            if before is not None and before.status is TaskStatus.QUEUED and self.state.task(task_id) is not before:
                self._note_step(who, task_id, before, worker)
                self.history.halved.update({task_id} - started)

    def _owner_of(self, task: Task | None) -> WorkerId | None:
        if task is None or task.entry_id is None:
            return None
        held = self.state.stream(task.queue, task.priority).held.get(task.entry_id)
        return None if held is None else held.owner

    def _note_sweep(self, who: str, queue: QueueName, fetched: Fetch) -> None:
        taken = tuple(one.receipt.priority for one in fetched.deliveries)
        if not taken:
            return
        bands = self.state.queue(queue).bands.items()
        left = tuple(priority for priority, stream in bands if priority > min(taken) and stream.fresh)
        self.history.sweeps.append(Sweep(at=self.loop.time(), who=who, taken=taken, left=left))

    def homes_of(self, task: Task) -> Homes:
        """Count the places that *task* is in."""
        entries = sum(
            fields.get("task_id") == task.task_id
            for queue in self.state.queues.values()
            for stream in queue.bands.values()
            for fields in stream.entries.values()
        )
        letters = sum(fields.get("task_id") == task.task_id for fields in self.state.letters.entries.values())
        return Homes(scheduled=int(task.task_id in self.state.schedule), entries=entries, letters=letters)


class Observed:
    """A port whose calls are remembered."""

    def __init__(self, name: str, *, server: Server, who: str) -> None:
        self._name = name
        self._server = server
        self._who = who

    def __getattr__(self, method: str) -> Any:
        server, name, who = self._server, self._name, self._who
        if not asyncio.iscoroutinefunction(getattr(server.port(name), method)):
            return getattr(server.port(name), method)

        async def call(*arguments: object, **named: object) -> object:
            return await server.carry_out(name, method, who, arguments, named)

        setattr(self, method, call)
        return call


def _is_sprung(trap: Trap, method: str, answer: object) -> bool:
    if isinstance(answer, Fetch):
        # what a fetch makes real first is a commit like any other
        return bool((trap.method == "fetch" and answer.deliveries) or (trap.method == "commit" and answer.answers))
    return trap.method == method and bool(answer)


def _in_order(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(value, key=_place)
    return value


def _place(value: object) -> tuple[object, ...]:
    return (value.queue, value.priority, value.entry_id) if isinstance(value, Receipt) else (str(value),)
