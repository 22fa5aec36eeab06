"""One worker: how it begins, what it runs, and how it ends."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from dtq.application.backoff import Backoff
from dtq.application.beat_runner import BeatRunner
from dtq.application.crew import Crew, Tools
from dtq.application.execution import SWALLOW_GRACE
from dtq.application.group_commit import GroupCommit
from dtq.application.handover import Condition, Handover
from dtq.application.in_flight import Job
from dtq.application.loops.beat import Beat
from dtq.application.loops.supervise import Supervisor
from dtq.application.nudge import Nudge, StopSign
from dtq.application.observers import Observers
from dtq.application.presence import Presence, WorkerIdInUse
from dtq.application.settings import ExitCode, WorkerSettings
from dtq.domain.errors import BrokerUnavailable, is_outage
from dtq.domain.text import class_name, text_of
from dtq.domain.workers import Heartbeat
from dtq.handlers import Registry
from dtq.ports.backend import Backend
from dtq.ports.broker import LeaseReport
from dtq.ports.environment import Chance, Ids
from dtq.ports.events import Observer

__all__ = ["Worker", "WorkerIdInUse"]

LAST_WORDS: Final = timedelta(seconds=2)
"""How much longer than its drain timeout a worker takes to end at most, where the broker does not answer."""

_MOST_NAMED: Final = 10


class Worker:
    """Runs the handlers of *registry* on the work of one queue until it is asked to stop.

    *abort* ends the process at once; the beat calls it, from its own thread, where the main loop hangs for good.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        registry: Registry,
        settings: WorkerSettings,
        ids: Ids,
        chance: Chance,
        observers: Sequence[Observer],
        retryable: tuple[type[BaseException], ...],
        beat: BeatRunner,
        abort: Callable[[ExitCode], None],
    ) -> None:
        self._backend = backend
        self._registry = registry
        self._settings = settings
        self._chance = chance
        self._observer = Observers(observers)
        self._beat_runner = beat
        self._abort = abort
        self._stop = StopSign(backend.clock)
        self._exit_now = StopSign(backend.clock)
        self._nudge = Nudge(backend.clock)
        self._is_stuck = False
        self._is_replaced = False
        self._abandoned = 0
        self._requests = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handover = Handover(
            look=self._condition,
            on_reports=self._hear_reports,
            on_trouble=self._hear_trouble,
            on_replaced=self._hear_replaced,
        )
        self._presence = Presence(backend, settings=settings, handover=self._handover, ids=ids, observer=self._observer)
        self._crew = self._hired(ids, registry=registry, retryable=retryable)
        self._supervisor = Supervisor(
            stop=self._stop, chance=chance, observer=self._observer, on_outage=self._crew.outage
        )

    @property
    def active(self) -> int:
        """How many attempts run, or have ended and are yet to be recorded; may be asked from any thread."""
        return self._condition().active

    async def run(self) -> ExitCode:
        """Work until asked to stop, and say how it ended; no outage of the broker ends it.

        Raises WorkerIdInUse, or UnsuitableBroker where the server must not be used; and WorkerReplaced, at once and
        without a word to anybody, where another worker has taken its id meanwhile. Threads of sync handlers may still
        run when this returns; a process that is to end must not wait for them.
        """
        self._loop = asyncio.get_running_loop()
        life = asyncio.create_task(self._live(), name="worker")
        exit_now = asyncio.create_task(self._exit_now.wait(), name="exit-now")
        try:
            await asyncio.wait({life, exit_now}, return_when=asyncio.FIRST_COMPLETED)
            if self._is_replaced:
                raise self._presence.replaced()
            if life.done():
                return life.result()
            self._observer.noticed("exiting_at_once", active=self._crew.in_flight.owned)
            return ExitCode.WORK_LEFT if self._crew.in_flight.owned or self._abandoned else ExitCode.DRAINED
        finally:
            life.cancel()
            exit_now.cancel()
            # whatever it ended with has been told, or is what ends this worker
            life.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())
            self._crew.poll.drop()
            self._crew.running.drop()
            self._crew.pool.shutdown(wait=False, cancel_futures=True)

    def request_stop(self) -> None:
        """Drain; asked a second time, end now. To be called on the worker's event loop, as by a signal handler."""
        self._requests += 1
        if self._requests > 1:
            self._exit_now.show()
        self._begin_to_stop()

    def _tools(self, ids: Ids) -> Tools:
        return Tools(
            backend=self._backend,
            settings=self._settings,
            ids=ids,
            chance=self._chance,
            observer=self._observer,
            stop=self._stop,
            nudge=self._nudge,
            commits=GroupCommit(self._backend.broker.commit),
            tenure=self._presence,
        )

    def _hired(self, ids: Ids, *, registry: Registry, retryable: tuple[type[BaseException], ...]) -> Crew:
        hear, doubt = self._nudge.give, self._look_again_soon
        return Crew(self._tools(ids), registry=registry, retryable=retryable, on_change=hear, on_stuck=doubt)

    async def _live(self) -> ExitCode:
        heartbeat = await self._enter()
        if heartbeat is None:
            return ExitCode.DRAINED
        crew, run = self._crew, self._supervisor.run
        beat = Beat(self._handover, settings=self._settings, heartbeat=heartbeat, abort=self._be_hung)
        lasting = [
            asyncio.create_task(self._tick(), name="tick"),
            asyncio.create_task(run(crew.listen.step, name="listen")),
        ]
        stopping = [
            asyncio.create_task(run(crew.poll.step, name="poll")),
            asyncio.create_task(run(crew.lead.step, name="lead")),
            asyncio.create_task(run(crew.sweeps.step, name="sweeps")),
        ]
        self._beat_runner.start(beat.run)
        try:
            await self._stop.wait()
            return await self._drain(stopping)
        finally:
            for task in (*lasting, *stopping):
                task.cancel()
            await asyncio.gather(*lasting, *stopping, return_exceptions=True)
            await self._beat_runner.stop()

    async def _enter(self) -> Heartbeat | None:
        """Register, however long the broker is out of reach; None where the worker is to stop before that."""
        backoff = Backoff(self._chance)
        task_types = tuple(handler.name for handler in self._registry)
        while not self._stop.is_raised():
            try:
                heartbeat, facts = await self._presence.enter(task_types)
            except BrokerUnavailable as error:
                self._observer.noticed("start_delayed", error=class_name(error), reason=text_of(error))
                self._crew.reaping.outage()
                await self._stop.pause(backoff.pause())
                continue
            self._crew.reaping.entered()
            if facts.uptime < self._settings.visibility_timeout:
                self._crew.reaping.outage()
            return heartbeat
        return None

    async def _drain(self, stopping: Sequence["asyncio.Task[None]"]) -> ExitCode:
        """Finish what is running, as long as it may take; hand back the rest; say goodbye."""
        crew = self._crew
        ends_at = self._backend.clock.monotonic() + self._settings.drain_timeout.total_seconds()
        gone_at = ends_at + LAST_WORDS.total_seconds()
        self._observer.noticed("draining", active=crew.in_flight.owned)
        await self._wait(stopping, until=gone_at)
        await self._try("poll", crew.poll.finish, until=gone_at)
        await self._try("lead", crew.lead.resign, until=gone_at)
        while crew.in_flight.owned and (left := ends_at - self._backend.clock.monotonic()) > 0:
            # nobody else waits for nudges any more, now that nothing is polled
            await self._nudge.wait(at_most=timedelta(seconds=left))
        self._abandoned = await crew.running.abandon()
        # from here on nothing is extended, so that what is handed back stays handed back
        await self._beat_runner.stop()
        rest = partial(crew.hand_back.give_all_but, crew.set_aside.receipts)
        is_back = await self._try("hand_back", rest, until=gone_at)
        await self._try("presence", self._presence.leave, until=gone_at)
        is_whole = is_back and not self._abandoned and not self._is_stuck
        self._observer.noticed("drained", abandoned=self._abandoned, stuck=self._is_stuck)
        return ExitCode.DRAINED if is_whole else ExitCode.WORK_LEFT

    async def _try(self, name: str, call: Callable[[], Coroutine[None, None, object]], *, until: float) -> bool:
        """Do what a drain does last, if the broker lets it; what it does not is found out by the peers, only later."""
        trying = asyncio.create_task(call(), name=f"drain-{name}")
        await self._wait([trying], until=until)
        error = TimeoutError() if trying.cancelled() else trying.exception()
        if error is None:
            return True
        if not isinstance(error, (BrokerUnavailable, TimeoutError)):
            raise error
        self._observer.noticed("drain_incomplete", part=name, error=class_name(error))
        return False

    async def _wait(self, tasks: Sequence["asyncio.Task[Any]"], *, until: float) -> None:
        """Wait for the end of *tasks*; those that wait themselves, for a broker that is silent, are canceled then."""

        def give_up() -> None:
            for task in tasks:
                task.cancel()

        left = max(0.0, until - self._backend.clock.monotonic())
        timer = self._backend.clock.call_later(timedelta(seconds=left), give_up)
        try:
            await asyncio.wait(tasks)
        finally:
            timer.cancel()
            give_up()

    async def _tick(self) -> None:
        """Show the beat that the main loop lives."""
        while True:
            self._handover.ticks += 1
            await self._backend.clock.sleep(self._settings.beat_interval / 2)

    def _condition(self) -> Condition:
        """Say how the worker is; the beat asks from its own thread, whatever the main loop does meanwhile."""
        tally = self._crew.settling.tally
        holds = self._crew.in_flight.holds
        return Condition(
            holds=holds,
            active=len(holds),
            draining=self._stop.is_raised(),
            processed=tally.processed,
            failed=tally.failed,
            retried=tally.retried,
        )

    def _look_again_soon(self) -> None:
        # a handler that only overruns a little frees its slot in a moment
        jobs = self._crew.in_flight.jobs
        self._backend.clock.call_later(SWALLOW_GRACE, partial(self._stop_if_stuck, jobs))

    def _stop_if_stuck(self, jobs: Collection[Job]) -> None:
        """Stop if *jobs* take every slot still; others that overran in the meantime have their own look."""
        if self._crew.in_flight.is_stuck and self._crew.in_flight.jobs == jobs and not self._is_stuck:
            self._is_stuck = True
            self._observer.noticed("every_slot_is_stuck", concurrency=self._settings.concurrency)
            self._begin_to_stop()

    def _begin_to_stop(self) -> None:
        self._stop.show()
        self._nudge.give()

    def _hear_reports(self, reports: Sequence[LeaseReport]) -> None:
        self._call_soon(lambda: self._crew.leases.note(reports))

    def _hear_replaced(self) -> None:
        self._call_soon(self._be_replaced)

    def _be_hung(self, code: ExitCode) -> None:
        """Tell, while the main loop cannot, under which tasks it has stopped, and end the process."""
        tasks = [hold.lease.task_id for hold in self._crew.in_flight.holds]
        self._observer.noticed("main_loop_hung", active=len(tasks), task_ids=", ".join(tasks[:_MOST_NAMED]))
        self._abort(code)

    def _be_replaced(self) -> None:
        self._is_replaced = True
        self._exit_now.show()

    def _hear_trouble(self, what: str, error: Exception) -> None:
        self._call_soon(lambda: self._note_trouble(what, error))

    def _note_trouble(self, what: str, error: Exception) -> None:
        self._observer.noticed(what, error=class_name(error), reason=text_of(error))
        if is_outage(error):
            self._crew.outage()

    def _call_soon(self, callback: Callable[[], None]) -> None:
        """Call back on the main loop, from whatever thread; a closed loop has no use for it any more."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(callback)
