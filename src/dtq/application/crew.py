"""The parts of one worker, put together."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from dtq.application.execution import ExecutionRules, Executor
from dtq.application.group_commit import GroupCommit
from dtq.application.hand_back import HandBack
from dtq.application.in_flight import InFlight
from dtq.application.leases import Leases
from dtq.application.loops.lead import Lead, LeadParts
from dtq.application.loops.listen import Listen
from dtq.application.loops.poll import Poll, PollParts
from dtq.application.loops.strays import Strays
from dtq.application.loops.upkeep import Sweeps, UpkeepParts
from dtq.application.nudge import Nudge, StopSign
from dtq.application.reaping import Reaping
from dtq.application.running import Running
from dtq.application.set_aside import SetAside
from dtq.application.settings import WorkerSettings
from dtq.application.settling import Settling
from dtq.application.starting import Starting
from dtq.application.taking import Taking, TakingParts
from dtq.application.tenure import Tenure
from dtq.domain.change import Change
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.task import TaskId
from dtq.domain.text import class_name
from dtq.handlers import Registry
from dtq.ports.answers import CommitAnswer
from dtq.ports.backend import Backend
from dtq.ports.environment import Chance, Ids
from dtq.ports.events import Observer


class Tools(Struct, frozen=True, kw_only=True):
    """What all parts of a worker share."""

    backend: Backend
    settings: WorkerSettings
    ids: Ids
    chance: Chance
    observer: Observer
    stop: StopSign
    nudge: Nudge
    commits: GroupCommit[Change, CommitAnswer]
    tenure: Tenure


class Crew:
    """Everything that works in one worker. *on_change* and *on_stuck* hear of the slots, as InFlight tells of them."""

    def __init__(
        self,
        tools: Tools,
        *,
        registry: Registry,
        retryable: tuple[type[BaseException], ...],
        on_change: Callable[[], None],
        on_stuck: Callable[[], None],
    ) -> None:
        self._tools = tools
        settings, clock = tools.settings, tools.backend.clock
        self.in_flight = InFlight(capacity=settings.concurrency, on_change=on_change, on_stuck=on_stuck)
        self.reaping = Reaping(
            clock=clock,
            chance=tools.chance,
            visibility_timeout=settings.visibility_timeout,
            heartbeat_interval=settings.heartbeat_interval,
            beat_interval=settings.beat_interval,
        )
        self.leases = Leases(
            tools.backend.broker, worker=settings.worker_id, in_flight=self.in_flight, observer=tools.observer
        )
        self.hand_back = self._hand_back()
        self.set_aside = SetAside(
            clock=clock, observer=tools.observer, queue=settings.queue, rest=settings.visibility_timeout
        )
        self.pool = ThreadPoolExecutor(max_workers=settings.concurrency, thread_name_prefix="dtq-handler")
        self.settling = self._settling()
        self.running = self._running(registry, retryable)
        self.poll = self._poll()
        self.lead = self._lead()
        self.sweeps = self._sweeps()
        self.listen = Listen(
            tools.backend.signals,
            worker=settings.worker_id,
            queue=settings.queue,
            on_cancel=self._look_at_cancellation,
            on_work=self._look_for_work,
        )

    def outage(self) -> None:
        """Take note that the broker was out of reach."""
        self.poll.outage()

    def _look_for_work(self) -> None:
        self.reaping.ask()
        self._tools.nudge.give()

    async def _look_at_cancellation(self, task_id: TaskId) -> None:
        try:
            await self.leases.check(task_id)
        except BrokerUnavailable as error:
            # the beat asks again within a second
            self._tools.observer.noticed("cancellation_unseen", task_id=task_id, error=class_name(error))

    def _hand_back(self) -> HandBack:
        tools = self._tools
        return HandBack(
            tools.backend.broker,
            signals=tools.backend.signals,
            tenure=tools.tenure,
            worker=tools.settings.worker_id,
            queue=tools.settings.queue,
            on_done=self.reaping.ask,
        )

    def _settling(self) -> Settling:
        tools = self._tools
        return Settling(
            tools.backend.broker.commit,
            policy=tools.settings.failure_policy,
            clock=tools.backend.clock,
            ids=tools.ids,
            chance=tools.chance,
            observer=tools.observer,
            on_outage=self.outage,
        )

    def _running(self, registry: Registry, retryable: tuple[type[BaseException], ...]) -> Running:
        tools = self._tools
        rules = ExecutionRules(
            worker_id=tools.settings.worker_id,
            result_max_bytes=tools.settings.result_max_bytes,
            retryable=retryable,
        )
        return Running(
            self.in_flight,
            executor=Executor(registry, clock=tools.backend.clock, pool=self.pool, rules=rules),
            settling=self.settling,
            grace=tools.settings.grace,
            clock=tools.backend.clock,
        )

    def _starting(self) -> Starting:
        tools = self._tools
        return Starting(
            tools.backend.broker,
            commit=tools.backend.broker.commit,
            hand_back=self.hand_back,
            set_aside=self.set_aside,
            tenure=tools.tenure,
            worker=tools.settings.worker_id,
            policy=tools.settings.failure_policy,
            clock=tools.backend.clock,
            ids=tools.ids,
            observer=tools.observer,
            run=self.running.begin,
        )

    def _taking(self, starting: Starting) -> Taking:
        tools = self._tools
        parts = TakingParts(
            broker=tools.backend.broker,
            in_flight=self.in_flight,
            reaping=self.reaping,
            starting=starting,
            settling=self.settling,
            hand_back=self.hand_back,
            set_aside=self.set_aside,
            stop=tools.stop,
            clock=tools.backend.clock,
            observer=tools.observer,
        )
        return Taking(parts, queue=tools.settings.queue, worker=tools.settings.worker_id)

    def _poll(self) -> Poll:
        tools, starting = self._tools, self._starting()
        parts = PollParts(
            broker=tools.backend.broker,
            in_flight=self.in_flight,
            leases=self.leases,
            reaping=self.reaping,
            starting=starting,
            settling=self.settling,
            taking=self._taking(starting),
            hand_back=self.hand_back,
            set_aside=self.set_aside,
            tenure=tools.tenure,
            nudge=tools.nudge,
            stop=tools.stop,
            observer=tools.observer,
        )
        return Poll(parts, queue=tools.settings.queue, worker=tools.settings.worker_id)

    def _lead(self) -> Lead:
        tools = self._tools
        return Lead(
            LeadParts(
                broker=tools.backend.broker,
                commits=tools.commits,
                leadership=tools.backend.leadership,
                stop=tools.stop,
                clock=tools.backend.clock,
                ids=tools.ids,
                chance=tools.chance,
                observer=tools.observer,
            )
        )

    def _sweeps(self) -> Sweeps:
        tools = self._tools
        strays = Strays(
            tools.backend.upkeep,
            store=tools.backend.broker,
            commits=tools.commits,
            clock=tools.backend.clock,
            ids=tools.ids,
            observer=tools.observer,
        )
        parts = UpkeepParts(
            schedule=tools.backend.broker,
            queues=tools.backend.queues,
            upkeep=tools.backend.upkeep,
            workers=tools.backend.workers,
            strays=strays,
            stop=tools.stop,
            clock=tools.backend.clock,
            ids=tools.ids,
            chance=tools.chance,
            observer=tools.observer,
            is_leading=lambda: self.lead.is_leading,
        )
        return Sweeps(
            parts,
            heartbeat_interval=tools.settings.heartbeat_interval,
            keep_alive_after=tools.settings.keep_alive_after,
        )
