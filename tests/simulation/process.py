"""A worker as a process of its own, which can be killed, stopped, and started again under its id or another."""

import asyncio
from typing import Any, Final

from msgspec.structs import replace

from dtq.application.beat_runner import Beating
from dtq.application.settings import ExitCode
from dtq.application.worker import Worker
from dtq.domain.change import Change
from dtq.domain.errors import DtqError
from dtq.domain.events import Event
from dtq.domain.task import WorkerId
from dtq.ports.backend import Backend
from tests.simulation.chances import Random, SeededChance, SeededIds, child
from tests.simulation.history import Exit, History, Life, Notice
from tests.simulation.loop import Actor, VirtualLoop
from tests.simulation.plan import Hiring
from tests.simulation.scripted import registry_of
from tests.simulation.server import HostClock, Server
from tests.simulation.threads import THREADS
from tests.simulation.wire import Wire

APART: Final = 3600.0
"""How many seconds the clocks of hosts are apart from the broker's at most."""


class Ear:
    """An observer whose process may end at any moment: what it has heard is in the history."""

    def __init__(self, who: str, *, history: History, loop: VirtualLoop) -> None:
        self._who = who
        self._history = history
        self._loop = loop

    def committed(self, *changes: Change) -> None:
        for change in changes:
            token = change.after.version
            self._history.told[token] = self._history.told.get(token, 0) + 1

    def happened(self, event: Event) -> None:
        """Take no note: the broker's own events are watched."""

    def noticed(self, what: str, **details: Any) -> None:
        self._history.notices.append(Notice(self._loop.time(), self._who, what, details))


class ThreadOfBeat:
    """Runs the beat in a second thread of the process, which goes on while a handler blocks the first."""

    def __init__(self, backend: Backend, *, actor: Actor, loop: VirtualLoop) -> None:
        self._backend = backend
        self._actor = actor
        self._loop = loop
        self._task: asyncio.Task[None] | None = None

    def start(self, beat: Beating) -> None:
        self._task = self._loop.create_task(beat(self._backend), name="beat", context=self._actor.context)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


class Process:
    """One life of one worker."""

    def __init__(self, hiring: Hiring, *, generation: int, server: Server) -> None:
        self.hiring = hiring
        self.name = f"{hiring.slot}.{generation}"
        self.is_over = False
        self.missed_at: float | None = None
        """From when on somebody else is to do its work."""
        self._server = server
        self._loop = server.loop
        self._history = server.history
        seed = self._history.terms.seed
        self._random: Random = child(seed, f"{self.name} process")
        self._main = Actor(self.name)
        self._beat = Actor(f"{self.name}b", speaks_to=self._main)
        self._threads = Actor(f"{self.name}t", speaks_to=self._main)
        self._main.context.run(THREADS.set, self._threads)
        self._clockwork = Actor(f"{self.name} clockwork")
        self.host = HostClock(self._loop, ahead=self._random.uniform(-APART, APART))
        self.wires = [
            Wire(name, server=server, random=child(seed, f"{name} wire"), host=self.host)
            for name in (self.name, f"{self.name}b")
        ]
        worker_id = hiring.settings.worker_id
        if not hiring.keeps_id:
            worker_id = WorkerId(f"{worker_id}-{generation}")
        self._settings = replace(hiring.settings, worker_id=worker_id)
        self._life = Life(
            at=self._loop.time(),
            who=self.name,
            worker_id=worker_id,
            queue=self._settings.queue,
            concurrency=self._settings.concurrency,
        )
        self._history.lives.append(self._life)
        self._worker: Worker | None = None
        self._is_asked_to_stop = False

    @property
    def _actors(self) -> tuple[Actor, ...]:
        return self._main, self._beat, self._threads

    def start(self) -> None:
        """Begin to work."""
        self._loop.create_task(self._live(), name=self.name, context=self._main.context)

    def kill(self) -> None:
        """End at once and without a word; what is on its way to the broker may still arrive."""
        if self.is_over:
            return
        self.is_over = True
        self._leave()
        for actor in self._actors:
            self._loop.kill(actor)
        loses, resets = self._random.random() < 0.5, self._random.random() < 0.8
        for wire in self.wires:
            wire.loses_what_is_under_way = loses
            if resets:
                wire.reset()

    def stop(self) -> None:
        """Stand still, as by SIGSTOP."""
        for actor in self._actors:
            self._loop.stop_actor(actor)

    def go_on(self) -> None:
        """Go on, as by SIGCONT."""
        for actor in self._actors:
            self._loop.go_on(actor)

    def stop_main(self) -> None:
        """Let the main thread stand still, as where a handler blocks it."""
        self._loop.stop_actor(self._main)

    def go_on_main(self) -> None:
        """Let the main thread go on."""
        self._loop.go_on(self._main)

    def request_stop(self) -> None:
        """Ask to drain, as by SIGTERM."""
        self._leave()
        self._loop.call_soon(self._request_stop, context=self._main.context.copy())

    def _leave(self) -> None:
        self._life.leaves_at = min(self._life.leaves_at, self._loop.time())

    def _request_stop(self) -> None:
        self._is_asked_to_stop = True
        if self._worker is not None:
            self._worker.request_stop()

    async def block(self, seconds: float) -> None:
        """Let the main thread stand still, the other one not."""
        self.stop_main()
        self._loop.call_later(seconds, self.go_on_main, context=self._clockwork.context)
        turn = self._loop.create_future()
        # whoever is told to stop meanwhile does not wait for it any more
        self._loop.call_soon(lambda: None if turn.done() else turn.set_result(None))
        await turn

    async def _live(self) -> None:
        main, beating = (wire.backend() for wire in self.wires)
        seed = self._history.terms.seed
        self._worker = Worker(
            main,
            registry=registry_of(self.name, clock=main.clock, history=self._history, block=self.block),
            settings=self._settings,
            ids=SeededIds(child(seed, f"{self.name} ids")),
            chance=SeededChance(child(seed, f"{self.name} chance")),
            observers=[Ear(self.name, history=self._history, loop=self._loop)],
            retryable=(),
            beat=ThreadOfBeat(beating, actor=self._beat, loop=self._loop),
            abort=self._abort,
        )
        if self._is_asked_to_stop:
            self._worker.request_stop()
        try:
            how = (await self._worker.run()).name
        except DtqError as error:
            how = error.code
        except Exception as error:  # noqa: BLE001 - a worker that ends by anything else is what a checker looks for
            how = f"{type(error).__name__}: {error}"
        self._end(how)

    def _abort(self, code: ExitCode) -> None:
        self._end(code.name)

    def _end(self, how: str) -> None:
        if not self.is_over:
            self._history.exits.append(Exit(self._loop.time(), self.name, how))
            self.kill()
