"""A program that submits and asks: the use cases of the API in a process of their own."""

import asyncio
from collections.abc import Awaitable, Callable
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
from tests.simulation.chances import SeededChance, SeededIds, child
from tests.simulation.history import Deed, History, Submission
from tests.simulation.loop import Actor
from tests.simulation.plan import TASK_TYPE, Action
from tests.simulation.process import Ear
from tests.simulation.server import Server
from tests.simulation.wire import Wire

OPERATOR: Final = audit.Actor(name="operator", request_id="request")
LIMITS: Final = BrokerLimits(queue_depth=12, scheduled=10)
"""Low enough to be met."""

_OF_ONE_TASK: Final = frozenset({"cancel", "get", "wait"})


class Client:
    """One process of the API, and whoever uses it."""

    def __init__(self, name: str, *, server: Server, known: dict[int, TaskId]) -> None:
        self.name = name
        self.actor = Actor(name)
        self.history: History = server.history
        self.open = 0
        """How many requests are unanswered."""
        seed = server.history.terms.seed
        self.wire = Wire(name, server=server, random=child(seed, f"{name} wire"))
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

    def begin(self, actions: tuple[Action, ...]) -> None:
        """Do everything at its time."""
        self._loop.call_soon(self._begin, actions, context=self.actor.context.copy())

    def resume_all(self, queues: list[str]) -> None:
        """Let every queue go on, however often it takes to say so."""
        self._loop.create_task(self._resume_all(queues), context=self.actor.context)

    def _begin(self, actions: tuple[Action, ...]) -> None:
        backend = self.wire.backend()
        clock, observers = backend.clock, [Ear(self.name, history=self.history, loop=self._loop)]
        trail = AuditTrail(backend.audit, clock=clock, observers=observers)
        self.tasks = TaskService(
            backend.broker,
            clock=clock,
            ids=self._ids,
            signals=backend.signals,
            trail=trail,
            observers=observers,
            rules=AdmissionRules(task_types={TASK_TYPE}),
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
        for action in actions:
            if action.what == "submit":
                self._submissions[action.number] = action
            self._loop.call_at(action.at, self._start, action)

    def _start(self, action: Action) -> None:
        self._loop.create_task(self._serve(action))

    async def _serve(self, action: Action) -> None:
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
        self.open += 1
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
        self.open -= 1

    async def _deed(self, action: Action) -> None:
        if action.what in _OF_ONE_TASK and action.number not in self._known:
            return
        about = self._known[action.number] if action.what in _OF_ONE_TASK else str(action.fields.get("queue", ""))
        deed = Deed(at=self._loop.time(), who=self.name, what=action.what, about=about)
        self.history.deeds.append(deed)
        self.open += 1
        try:
            deed.status = await self._do[action.what](action)
        except DtqError as error:
            deed.answer = type(error).__name__
        else:
            deed.answer = "done"
        deed.ended_at = self._loop.time()
        self.open -= 1

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
