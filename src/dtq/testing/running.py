"""Running what is due, one task after another, without a worker's loops: nothing is left to the time of day."""

import asyncio
import contextlib
from typing import Final

from msgspec.structs import replace

from dtq.application.crew import Crew, Tools
from dtq.application.group_commit import GroupCommit
from dtq.application.nudge import Nudge, StopSign
from dtq.application.observers import Observers
from dtq.application.starting import Starting
from dtq.application.tenure import Undisputed
from dtq.domain.task import WorkerId
from dtq.entrypoints.container import Container, retryable_errors
from dtq.entrypoints.part_options import worker_settings_of
from dtq.handlers.registry import Registry
from dtq.ports.events import Observer

WORKER: Final = WorkerId("test-worker")
_PROMOTIONS: Final = 1_000
"""How many batches of scheduled tasks may be due at one moment."""


class StillRunning(AssertionError):
    """A handler does not end; the message names its task."""


class TooMuchWork(AssertionError):
    """More attempts were due than a drain may run, as where tasks submit each other for ever."""


class MiddleChance:
    """Chance that always falls in the middle: delays of retries are what their settings say."""

    def uniform(self, low: float, high: float) -> float:
        """Return the middle."""
        return (low + high) / 2


class Runner:
    """A worker of one slot that takes one step whenever it is asked to; the parts are those of real ones."""

    def __init__(self, container: Container, *, registry: Registry, observer: Observer) -> None:
        self._backend = container.backend()
        self._changed = asyncio.Event()
        stop = StopSign(self._backend.clock)
        # what is shown that it is to stop does its work once, and does not wait for time to pass
        stop.show()
        settings = replace(worker_settings_of(container.settings(), WORKER), concurrency=1)
        self._abandoned_after = settings.visibility_timeout
        tools = Tools(
            backend=self._backend,
            settings=settings,
            ids=container.ids(),
            chance=container.chance(),
            observer=Observers([observer]),
            stop=stop,
            nudge=Nudge(self._backend.clock),
            commits=GroupCommit(self._backend.broker.commit),
            tenure=Undisputed(),
        )
        changed = self._changed.set
        self._crew = Crew(tools, registry=registry, retryable=retryable_errors(), on_change=changed, on_stuck=changed)
        self._starting = Starting(
            self._backend.broker,
            commit=self._backend.broker.commit,
            hand_back=self._crew.hand_back,
            set_aside=self._crew.set_aside,
            tenure=tools.tenure,
            worker=WORKER,
            policy=settings.failure_policy,
            clock=self._backend.clock,
            ids=tools.ids,
            observer=tools.observer,
            run=self._crew.running.begin,
        )

    async def run_one(self, *, patience: float, may_run: bool = True) -> bool:
        """Run one task that is due now, unless it may not be run; return whether there was one.

        Raises StillRunning where its handler has not ended after *patience* seconds of real time.
        """
        await self._promote()
        for queue in await self._backend.queues.names():
            fetched = await self._backend.broker.fetch(queue, worker=WORKER, limit=1, reap_idle=self._abandoned_after)
            if fetched.deliveries and not may_run:
                await self._crew.hand_back.give([delivery.receipt for delivery in fetched.deliveries])
                return True
            if fetched.deliveries:
                await self._starting.start(fetched.deliveries)
                await self._until_idle(patience)
                return True
        return False

    def close(self) -> None:
        """Let go of whatever still runs."""
        self._crew.pool.shutdown(wait=False, cancel_futures=True)

    async def _promote(self) -> None:
        for _ in range(_PROMOTIONS):
            due = await self._backend.broker.next_due()
            if due is None or due > self._backend.clock.now():
                return
            await self._crew.lead.step()
        raise TooMuchWork(f"more than {_PROMOTIONS} batches of scheduled tasks are due")

    async def _until_idle(self, patience: float) -> None:
        in_flight = self._crew.in_flight
        listening = asyncio.create_task(self._crew.listen.step(), name="test-listen")
        try:
            async with asyncio.timeout(patience):
                while not in_flight.free:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            tasks = [f"{job.task.task_type} ({job.task.task_id})" for job in in_flight.active()]
            self._crew.running.drop()
            raise StillRunning(
                f"{', '.join(tasks) or 'a handler'} still runs after {patience:g} s of real time; "
                "the test's clock does not move while a handler runs, so its timeout cannot end it"
            ) from error
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
