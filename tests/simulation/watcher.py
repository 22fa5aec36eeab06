"""Somebody who watches: a client of the fan-out that takes what it is sent, at its own pace."""

from datetime import timedelta
from typing import Final

from dtq.application.fan_out import FanOut
from dtq.application.fan_out_filter import EventFilter
from dtq.application.fan_out_tap import Message, Tap, TapClosed
from tests.simulation.chances import SeededChance, child
from tests.simulation.history import Watch
from tests.simulation.loop import Actor
from tests.simulation.process import Ear
from tests.simulation.server import Server
from tests.simulation.wire import Wire

PATIENT: Final = timedelta(hours=1)


class Watcher:
    """One process that shows events to two clients: one that keeps up, and one that is slow."""

    def __init__(self, name: str, *, server: Server) -> None:
        self.actor = Actor(name)
        self._server = server
        self._loop = server.loop
        self._history = server.history
        seed = server.history.terms.seed
        self.wire = Wire(name, server=server, random=child(seed, f"{name} wire"))
        self._random = child(seed, f"{name} pace")
        self._name = name
        self._watches: list[Watch] = []

    def begin(self) -> None:
        """Watch from now on."""
        self._loop.call_soon(self._begin, context=self.actor.context.copy())

    def close(self) -> None:
        """Watch no longer; what somebody slow has not taken by now, they need not have seen."""
        for watch in self._watches:
            watch.until = min(watch.until, self._loop.time())
        self._loop.call_soon(self.fan_out.close, context=self.actor.context.copy())

    def _begin(self) -> None:
        backend = self.wire.backend()
        seed = self._history.terms.seed
        self.fan_out = FanOut(
            backend.events,
            clock=backend.clock,
            chance=SeededChance(child(seed, f"{self._name} chance")),
            observers=[Ear(self._name, history=self._history, loop=self._loop)],
            buffer=12,
            max_clients=5,
        )
        for pace, longest in (("quick", 0.0), ("slow", 3.0)):
            watch = Watch(who=f"{self._name}-{pace}")
            self._history.watches.append(watch)
            self._watches.append(watch)
            self._loop.create_task(self._watch(watch, longest))

    async def _watch(self, watch: Watch, longest: float) -> None:
        def as_it_is(message: Message) -> Message:
            """A form of its own for each client, which then has a channel of its own."""
            return message

        with self.fan_out.listen(EventFilter(), encode=as_it_is) as tap:
            watch.since = self._loop.time()
            try:
                while True:
                    await self._take(tap, watch, longest)
            except TapClosed as closed:
                watch.ending = closed.ending.value
                watch.until = min(watch.until, self._loop.time())

    async def _take(self, tap: Tap[Message], watch: Watch, longest: float) -> None:
        for message in await tap.take(at_most=PATIENT):
            watch.heard.append((self._loop.time(), message))
        if longest:
            await self._server.clock.sleep(timedelta(seconds=self._random.uniform(0.0, longest)))
