"""A program that submits and asks: the use cases of the API in a process of their own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

from dtq.application.audit import AuditTrail
from dtq.application.dead_letters import DeadLetterService
from dtq.application.fan_out import FanOut
from dtq.application.queues import QueueService
from dtq.application.tasks import TaskService
from dtq.application.waiting import Waiting
from dtq.application.workers import WorkerService
from dtq.domain import audit
from dtq.domain.admission import AdmissionRules, BrokerLimits
from dtq.domain.errors import BrokerUnavailable, DtqError
from dtq.domain.task import TaskId
from dtq.ports.backend import Backend
from tests.simulation.chances import Random, SeededChance, SeededIds, child
from tests.simulation.history import Deed, History, Submission
from tests.simulation.loop import Actor
from tests.simulation.plan import SYNC_TYPE, TASK_TYPE, Action
from tests.simulation.process import APART, Ear
from tests.simulation.server import HostClock, Server
from tests.simulation.wire import Wire

OPERATOR: Final = audit.Actor(name="operator", request_id="request")
LIMITS: Final = BrokerLimits(queue_depth=12, scheduled=10)
"""Low enough to be met."""

_OF_ONE_TASK: Final = frozenset({"cancel", "get", "wait"})


CRASHED: Final = "Crashed"
"""What stands for the answer that nobody was there to hear."""


class Client:
    """One life of one process of the API, and of whoever uses it."""

    def __init__(self, slot: str, *, generation: int, server: Server, known: dict[int, TaskId]) -> None:
        self.slot = slot
        self.generation = generation
        self.name = f"{slot}.{generation}"
        self.actor = Actor(self.name)
        self.history: History = server.history
        self.is_over = False
        seed, name = server.history.terms.seed, self.name
        self._random: Random = child(seed, f"{name} process")
        self.host = HostClock(server.loop, ahead=self._random.uniform(-APART, APART))
        self.wire = Wire(name, server=server, random=child(seed, f"{name} wire"), host=self.host)
        self._unanswered: dict[Submission | Deed, Action] = {}
        self._ahead: dict[int, Action] = {}
        self._loop = server.loop
        self._known = known
        self._ids = SeededIds(child(seed, f"{name} ids"))
        self._chance = SeededChance(child(seed, f"{name} chance"))
        self._submissions: dict[int, Action] = {}
        self._do: dict[str, Callable[[Action], Awaitable[str]]] = {
            "cancel": self._cancel,
            "get": self._get,
            "wait": self._wait,
            "requeue": self._requeue,
            "discard": self._discard,
            "pause": self._pause,
            "resume": self._resume,
            "purge": self._purge,
            "purge_dead": self._purge_dead,
        }

    @property
    def open(self) -> int:
        """How many requests are unanswered, or were and are to be repeated."""
        return len(self._unanswered)

    def begin(self, actions: Sequence[Action]) -> None:
        """Do everything at its time."""
        self._loop.call_soon(self._begin, actions, context=self.actor.context.copy())

    def kill(self) -> Sequence[Action]:
        """End at once; return what its successor has to do: whatever had a key once more, and what was yet to come.

        What is on its way to the broker may still arrive, and be carried out.
        """
        self.is_over = True
        self._loop.kill(self.actor)
        self.wire.loses_what_is_under_way = self._random.random() < 0.5
        self.wire.reset()
        for request in self._unanswered:
            request.answer, request.ended_at = CRASHED, self._loop.time()
        again = [action for action in self._unanswered.values() if action.fields.get("idempotency_key")]
        return [*again, *self._ahead.values()]

    def resume_all(self, queues: list[str]) -> None:
        """Let every queue go on, however often it takes to say so."""
        self._loop.create_task(self._resume_all(queues), context=self.actor.context)

    def _begin(self, actions: Sequence[Action]) -> None:
        backend = self.wire.backend()
        self._preparing = self._loop.create_task(self._prepare(backend))
        clock, observers = backend.clock, [Ear(self.name, history=self.history, loop=self._loop)]
        trail = AuditTrail(backend.audit, clock=clock, observers=observers)
        self.tasks = TaskService(
            backend.broker,
            clock=clock,
            ids=self._ids,
            signals=backend.signals,
            trail=trail,
            observers=observers,
            rules=AdmissionRules(task_types={TASK_TYPE, SYNC_TYPE}),
            limits=LIMITS,
        )
        self.queues = QueueService(
            backend.queues,
            store=backend.broker,
            dead_letters=backend.dead_letters,
            workers=WorkerService(backend.workers, clock=clock, heartbeat_interval=timedelta(seconds=2)),
            signals=backend.signals,
            clock=clock,
            ids=self._ids,
            trail=trail,
            observers=observers,
            max_queues=5,
        )
        self.letters = DeadLetterService(
            backend.dead_letters, store=backend.broker, clock=clock, ids=self._ids, trail=trail, observers=observers
        )
        self.fan_out = FanOut(
            backend.events, clock=clock, chance=self._chance, observers=observers, buffer=100, max_clients=10
        )
        self.waiting = Waiting(self.tasks, fan_out=self.fan_out, clock=clock)
        for number, action in enumerate(actions):
            if action.what == "submit":
                self._submissions[action.number] = action
            self._ahead[number] = action
            self._loop.call_at(max(action.at, self._loop.time()), self._start_planned, number)

    async def _prepare(self, backend: Backend) -> None:
        """Ask the broker for what must be known before anybody is served, the time among it, as the API does."""
        while True:
            try:
                await backend.server.prepare()
            except BrokerUnavailable:
                await asyncio.wait({self._in_a_moment()})
            else:
                return

    def _start_planned(self, number: int) -> None:
        self._start(self._ahead.pop(number))

    def _start(self, action: Action) -> None:
        self._loop.create_task(self._serve(action))

    async def _serve(self, action: Action) -> None:
        await asyncio.wait({self._preparing})
        if action.what == "repeat":
            repeated = self._submissions.get(action.number)
            if repeated is not None:
                await self._submit(repeated)
        elif action.what == "submit":
            await self._submit(action)
        else:
            await self._deed(action)

    async def _submit(self, action: Action) -> None:
        fields = action.fields
        submission = Submission(
            at=self._loop.time(),
            who=self.name,
            number=action.number,
            queue=fields["queue"],
            key=fields.get("idempotency_key"),
            delay=timedelta(seconds=fields.get("delay_seconds", 0.0)),
        )
        self.history.submissions.append(submission)
        self._unanswered[submission] = action
        try:
            submitted = await self.tasks.submit(fields)
        except DtqError as error:
            submission.answer = type(error).__name__
            submission.task_id = getattr(error, "task_id", None)
        else:
            submission.answer = "duplicate" if submitted.duplicate else "created"
            submission.task_id = submitted.task_id
            self._known.setdefault(action.number, submitted.task_id)
        submission.ended_at = self._loop.time()
        del self._unanswered[submission]

    async def _deed(self, action: Action) -> None:
        if action.what in _OF_ONE_TASK and action.number not in self._known:
            return
        about = self._known[action.number] if action.what in _OF_ONE_TASK else str(action.fields.get("queue", ""))
        deed = Deed(at=self._loop.time(), who=self.name, what=action.what, about=about)
        self.history.deeds.append(deed)
        self._unanswered[deed] = action
        try:
            deed.status = await self._do[action.what](action)
        except DtqError as error:
            deed.answer = type(error).__name__
        else:
            deed.answer = "done"
        deed.ended_at = self._loop.time()
        del self._unanswered[deed]

    async def _cancel(self, action: Action) -> str:
        return (await self.tasks.cancel(self._known[action.number], by=OPERATOR)).status

    async def _get(self, action: Action) -> str:
        return (await self.tasks.get(self._known[action.number])).task.status

    async def _wait(self, action: Action) -> str:
        within = timedelta(seconds=20)
        return (await self.waiting.ended(self._known[action.number], within=within)).task.status

    async def _requeue(self, action: Action) -> str:
        letter = await self._a_letter(action)
        return (await self.letters.requeue(letter, by=OPERATOR)).task.status if letter else ""

    async def _discard(self, action: Action) -> str:
        letter = await self._a_letter(action)
        return (await self.letters.discard(letter, by=OPERATOR)).status if letter else ""

    async def _a_letter(self, action: Action) -> TaskId | None:
        """Look at the dead letters, as operators do, and choose one."""
        letters = await self.letters.recent(limit=20)
        found = [letter.task.task_id for letter in letters if letter.task is not None]
        return found[action.number % len(found)] if found else None

    async def _pause(self, action: Action) -> str:
        await self.queues.pause(action.fields["queue"], by=OPERATOR)
        self._loop.call_later(3.0, self._start, Action(at=0, client=0, what="resume", fields=action.fields))
        return ""

    async def _resume(self, action: Action) -> str:
        await self.queues.resume(action.fields["queue"], by=OPERATOR)
        return ""

    async def _purge(self, action: Action) -> str:
        return str(await self.queues.purge(action.fields["queue"], by=OPERATOR))

    async def _purge_dead(self, action: Action) -> str:
        del action
        return str(await self.letters.purge(by=OPERATOR))

    async def _resume_all(self, queues: list[str]) -> None:
        for queue in queues:
            await self._until_resumed(queue)

    async def _until_resumed(self, queue: str) -> None:
        while True:
            try:
                await self.queues.resume(queue, by=OPERATOR)
            except BrokerUnavailable:
                await asyncio.wait({self._in_a_moment()})
            else:
                return

    def _in_a_moment(self) -> "asyncio.Future[None]":
        moment = self._loop.create_future()
        self._loop.call_later(0.5, moment.set_result, None)
        return moment
