"""A broker in memory, a clock that is moved by hand, and any number of workers and clients."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from dtq.adapters.memory import State, backend_of
from dtq.adapters.memory.clock import settle
from dtq.application.audit import AuditTrail
from dtq.application.beat_runner import Beating, BeatRunner, LoopBeat
from dtq.application.dead_letters import DeadLetterService
from dtq.application.queues import QueueService
from dtq.application.settings import ExitCode, WorkerSettings
from dtq.application.tasks import TaskService, TaskView
from dtq.application.worker import Worker
from dtq.application.workers import WorkerService
from dtq.domain.admission import AdmissionRules, BrokerLimits
from dtq.domain.change import Change
from dtq.domain.delivery import FailurePolicy
from dtq.domain.errors import BrokerRefused
from dtq.domain.events import Event, EventType
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task, TaskId
from dtq.handlers import Registry
from dtq.ports.answers import CommitAnswer
from dtq.ports.backend import Backend, BackendOptions
from tests.application.handlers import REGISTRY
from tests.application.link import Link, over
from tests.application.stage import MOMENT, CountedIds, MiddleChance, Notes, TickingClock
from tests.factories import QUEUE

TURNS = 300
"""Enough turns of the event loop for whatever a dozen tasks need without time passing."""

MAX_QUEUES = 5
"""How many queues may be known."""

_TURNS_ON_THE_WAY = 60


EXPIRING: Final[Mapping[str, str]] = {"metadata": '{"ttl_seconds": 86400}'}
"""What a task has that its worker looks at before it starts it: it may expire meanwhile (ADR 104)."""


class WatchedBeat:
    """A beat that never beats, as of a worker whose second connection is dead, and that tells when it would."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    def start(self, beat: Beating) -> None:
        del beat
        self._order.append("start")

    async def stop(self) -> None:
        self._order.append("stop")


class Staff:
    """One worker of the world, its link, what it told, and how it ended."""

    def __init__(
        self, world: "World", settings: WorkerSettings, *, registry: Registry, retryable: Any, beat: BeatRunner | None
    ) -> None:
        self.link = Link()
        self.notes = Notes()
        self.settings = settings
        self.aborted: list[ExitCode] = []
        self.backend = over(self.link, world.backend)
        self.worker = Worker(
            self.backend,
            registry=registry,
            settings=settings,
            ids=world.ids,
            chance=MiddleChance(),
            observers=[self.notes],
            retryable=retryable,
            beat=beat or LoopBeat(self.backend),
            abort=self.aborted.append,
        )
        self.life = asyncio.ensure_future(self.worker.run())

    @property
    def active(self) -> int:
        """How many attempts are not recorded yet."""
        return self.worker._crew.in_flight.owned  # noqa: SLF001 - the broker cannot tell it from the outside

    @property
    def free(self) -> int:
        """How many slots are empty."""
        return self.worker._crew.in_flight.free  # noqa: SLF001 - a slot shows nowhere else

    def kill(self) -> None:
        """End the worker without a word, as SIGKILL would: nothing it still sends arrives."""
        self.link.is_down = True
        self.life.cancel()

    def hold_records(self) -> asyncio.Event:
        """Let no outcome arrive at the broker until the event that is returned is set; starts do."""
        taken = asyncio.Event()
        settling = self.worker._crew.settling  # noqa: SLF001 - a link cannot tell the commits of ends from those of starts
        settle = settling.settle
        held: list[Callable[[], None]] = []

        def hold(*arguments: Any, **named: Any) -> None:
            held.append(partial(settle, *arguments, **named))

        async def let_go() -> None:
            await taken.wait()
            settling.settle = settle  # type: ignore[method-assign]  # it was put aside below
            for late in held:
                late()

        settling.settle = hold  # type: ignore[method-assign]  # until the event is set
        self._held = asyncio.create_task(let_go())
        return taken

    def refuse_records_on_their_own(self) -> None:
        """Let no outcome arrive at the broker but by a fetch that takes it along."""

        async def refused(changes: Sequence[Change]) -> Sequence[CommitAnswer]:
            raise BrokerRefused(f"{len(changes)} ends on their own")

        self.worker._crew.settling._commit = refused  # noqa: SLF001 - as above

    def stop(self) -> None:
        """Ask the worker to stop, as a first or second signal."""
        self.worker.request_stop()


class World:
    """One broker and everybody who uses it."""

    def __init__(self) -> None:
        self.clock = TickingClock()
        self.state = State(self.clock, options=BackendOptions())
        self.backend: Backend = backend_of(self.state)
        self.ids = CountedIds()
        self.link = Link()
        self.notes = Notes()
        self.staff: list[Staff] = []
        client = over(self.link, self.backend)
        self.trail = AuditTrail(client.audit, clock=self.clock, observers=[self.notes])
        self.limit(BrokerLimits())
        self.workers = WorkerService(client.workers, clock=self.clock, heartbeat_interval=timedelta(seconds=5))
        self.queues = QueueService(
            client.queues,
            store=client.broker,
            dead_letters=client.dead_letters,
            workers=self.workers,
            signals=client.signals,
            clock=self.clock,
            ids=self.ids,
            trail=self.trail,
            observers=[self.notes],
            max_queues=MAX_QUEUES,
        )
        self.dead_letters = DeadLetterService(
            client.dead_letters,
            store=client.broker,
            clock=self.clock,
            ids=self.ids,
            trail=self.trail,
            observers=[self.notes],
        )

    def limit(self, limits: BrokerLimits) -> None:
        """Let clients submit under these limits."""
        client = over(self.link, self.backend)
        self.tasks = TaskService(
            client.broker,
            clock=self.clock,
            ids=self.ids,
            signals=client.signals,
            trail=self.trail,
            observers=[self.notes],
            rules=AdmissionRules(task_types=REGISTRY.task_types),
            limits=limits,
        )

    async def hire(
        self, *, registry: Registry = REGISTRY, retryable: Any = (), beat: BeatRunner | None = None, **settings: Any
    ) -> Staff:
        """Start a worker of concurrency 1, unless told otherwise, and let it settle in."""
        chosen = WorkerSettings(worker_id=self.ids.worker(), hostname="host", concurrency=1)
        staff = Staff(self, replace(chosen, **settings), registry=registry, retryable=retryable, beat=beat)
        self.staff.append(staff)
        await self.settle()
        return staff

    async def hire_unconnected(self, **settings: Any) -> Staff:
        """Start a worker whose link is down from the first moment."""
        chosen = WorkerSettings(worker_id=self.ids.worker(), hostname="host", concurrency=1)
        staff = Staff(self, replace(chosen, **settings), registry=REGISTRY, retryable=(), beat=None)
        staff.link.is_down = True
        self.staff.append(staff)
        await self.settle()
        return staff

    async def submit(self, task_type: str = "note", **fields: object) -> TaskId:
        """Submit a task and let whatever that starts go on."""
        submitted = await self.tasks.submit({"task_type": task_type, "payload": '{"n": 1}'} | fields)
        await self.settle()
        return submitted.task_id

    async def submit_quietly(self) -> TaskId:
        """Bring a task into being past the faults of the broker's state, and let nobody go on yet."""
        writes, self.state.faults.writes_left = self.state.faults.writes_left, None
        submitted = await self.tasks.submit({"task_type": "note", "payload": "{}"})
        self.state.faults.writes_left = writes
        return submitted.task_id

    def rewrite(self, task: Task) -> None:
        """Store a task as if somebody else had changed it."""
        record = self.state.records.get(task.task_id)
        assert record is not None
        changed = replace(record, task=replace(task, version=self.ids.token()))
        self.state.records.put(task.task_id, changed, lifetime=self.state.options.retention.task)

    async def settle(self) -> None:
        """Let everybody go on as far as they get without time passing."""
        await settle(turns=TURNS)

    async def advance(self, seconds: float) -> None:
        """Let time pass, with time enough for everybody at each moment on the way."""
        end = self.clock.monotonic() + seconds
        await self.settle()
        while (left := timedelta(seconds=end - self.clock.monotonic())) > MOMENT:
            following = self.clock.next_timer()
            await self.clock.advance(left if following is None else min(left, max(following, MOMENT)))
            await settle(turns=_TURNS_ON_THE_WAY)
        await self.settle()

    def let_pass(self, seconds: float) -> None:
        """Let time pass at a stroke, in which nobody does anything."""
        self.clock._elapsed += timedelta(seconds=seconds)  # noqa: SLF001 - a clock that is moved lets everybody act

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait, in real time, for what a thread brings about."""
        async with asyncio.timeout(10):
            while not condition():
                await settle(turns=1)
        await self.settle()

    async def task(self, task_id: TaskId) -> Task:
        """The task as stored."""
        task = await self.backend.broker.load(task_id)
        assert task is not None
        return task

    async def view(self, task_id: TaskId) -> TaskView:
        """The task as clients see it."""
        return await self.tasks.get(task_id)

    async def status(self, task_id: TaskId) -> TaskStatus:
        """Where the task stands."""
        return (await self.task(task_id)).status

    async def pending(self, queue: QueueName = QUEUE) -> int:
        """How many entries are owned by workers."""
        return (await self.backend.queues.stats(queue)).pending

    async def age_server(self) -> None:
        """Let the server be old enough that nobody holds back because of its youth."""
        await self.advance(31)

    async def close(self) -> None:
        """Send everybody home."""
        for staff in self.staff:
            staff.life.cancel()
        await asyncio.gather(*(staff.life for staff in self.staff), return_exceptions=True)
        for staff in self.staff:
            # a thread that comes late would leave its mark on the next test
            staff.worker._crew.pool.shutdown(wait=True)  # noqa: SLF001 - a worker never waits for its threads
        await settle()


def starts_of(events: list[Event]) -> Counter[TaskId | None]:
    """How often each task was started."""
    return Counter(event.task_id for event in events if event.type is EventType.TASK_STARTED)


POLICY_WITHOUT_DEAD_LETTERS = FailurePolicy(dead_letters=False)
