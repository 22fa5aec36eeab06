"""The connection between a program and its broker, which a test may cut, stall, and rob of single replies."""

import asyncio
import inspect
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

from msgspec.structs import replace

from dtq.domain.errors import BrokerRefused, BrokerUnavailable, OutcomeUnknown
from dtq.ports.backend import Backend


class Loss(Enum):
    """What happens to one call."""

    BEFORE = "it does not reach the broker"
    AFTER = "it is carried out, and its reply is lost"
    GARBLED = "it is carried out, and its reply raises what nobody expects"


LOSSES = (Loss.BEFORE, Loss.AFTER)
"""What an unreachable broker looks like."""


class UnknownFault(Exception):
    """What nobody expects."""


class Link:
    """What goes wrong between one program and the broker. Nothing, unless a test says so."""

    def __init__(self) -> None:
        self.is_down = False
        self.calls: Counter[str] = Counter()
        self._losses: dict[str, deque[Loss]] = {}
        self._faults: Counter[str] = Counter()
        self._broken_by: dict[str, Callable[[], Exception]] = {}
        self._refusals: Counter[str] = Counter()
        self._refused_by: dict[str, type[BrokerUnavailable]] = {}
        self._watchers: dict[str, Callable[[], None]] = {}
        self._stalls: dict[str, asyncio.Event] = {}

    def lose(self, method: str, loss: Loss, *, times: int = 1) -> None:
        """Let the next calls of *method* go wrong."""
        self._losses.setdefault(method, deque()).extend([loss] * times)

    def watch(self, method: str, watcher: Callable[[], None]) -> None:
        """Call *watcher* at each call of *method*."""
        self._watchers[method] = watcher

    def break_down(self, method: str, *, times: int = 1, by: Callable[[], Exception] | None = None) -> None:
        """Let the next calls of *method* raise what nobody expects, and what *by* makes."""
        self._faults[method] += times
        self._broken_by[method] = by or (lambda: UnknownFault(method))

    def refuse(self, method: str, *, times: int = 1, by: type[BrokerUnavailable] = BrokerRefused) -> None:
        """Let the next calls of *method* be refused, or stopped half-way, by a broker that is well."""
        self._refusals[method] += times
        self._refused_by[method] = by

    def stall(self, *methods: str) -> None:
        """Let calls of *methods* stand still before they reach the broker."""
        self._stalls |= {method: asyncio.Event() for method in methods}

    def go_on(self) -> None:
        """Let everything go on that stands still."""
        for stalled in self._stalls.values():
            stalled.set()
        self._stalls = {}

    async def carry(self, method: str, call: Callable[[], Awaitable[object]], *, commits: bool = False) -> object:
        """Make one call, or fail to; one that *commits* besides is also a commit like any other."""
        if commits:
            return await self.carry("commit", lambda: self.carry(method, call))
        self.calls[method] += 1
        if method in self._watchers:
            self._watchers[method]()
        if method in self._stalls:
            await self._stalls[method].wait()
        if self._faults[method] > 0:
            self._faults[method] -= 1
            fault = self._broken_by[method]()
            raise fault
        if self._refusals[method] > 0:
            self._refusals[method] -= 1
            raise self._refused_by[method](f"{method} is refused")
        losses = self._losses.get(method)
        loss = losses.popleft() if losses else None
        if loss is Loss.BEFORE or self._is_cut():
            raise BrokerUnavailable("the link is down")
        answer = await call()
        if loss is Loss.GARBLED:
            raise UnknownFault(method)
        if loss is Loss.AFTER or self._is_cut():
            raise OutcomeUnknown("the reply was lost")
        return answer

    def _is_cut(self) -> bool:
        return self.is_down


class Linked:
    """A port behind a link."""

    def __init__(self, port: object, link: Link) -> None:
        self._port = port
        self._link = link

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not inspect.iscoroutinefunction(method):
            return method

        async def call(*arguments: object, **named: object) -> object:
            commits = bool(named.get("after"))
            return await self._link.carry(name, lambda: method(*arguments, **named), commits=commits)

        return call


PORTS = (
    "broker",
    "queues",
    "upkeep",
    "dead_letters",
    "workers",
    "leadership",
    "signals",
    "events",
    "audit",
    "surveyor",
    "locator",
    "server",
)


def over(link: Link, backend: Backend) -> Backend:
    """The same backend, seen through a link."""
    return replace(backend, **{name: Linked(getattr(backend, name), link) for name in PORTS})
