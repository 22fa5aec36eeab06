"""Strikes a deployment as a plan has it, and tells what it did."""

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from tests.chaos.calamities import Calamities
from tests.chaos.deployment import Deployment
from tests.chaos.lines import Lines
from tests.chaos.plan import Fault, Plan
from tests.chaos.processes import Processes
from tests.chaos.server import Server
from tests.chaos.strike import EVERYBODY, Strike
from tests.simulation.history import Fault as Noted
from tests.simulation.history import History

TICK_S: Final = 0.02
AGAIN_S: Final = 0.1
ASK_S: Final = 0.25

Item: TypeAlias = Callable[[], float | None]
"""Something to do; it answers after how many seconds it is to be done again, or None."""


class Nemesis:
    """Does one thing after another, each at its time, in the one thread that has started the processes."""

    def __init__(
        self, deployment: Deployment, *, plan: Plan, history: History, begin: float, tell: Callable[[str], None]
    ) -> None:
        self._tell = tell
        self._history = history
        self._begin = begin
        self._agenda: list[tuple[float, int, Item]] = []
        self._count = itertools.count()
        self.processes = Processes(deployment, history=history, now=lambda: self.now)
        self._server = Server(deployment)
        self._lines = Lines(deployment)
        struck = (self.processes, self._server, self._lines, Calamities(deployment))
        self._acts = {kind: act for one in struck for kind, act in one.acts().items()}
        self.strikes: list[Strike] = []
        for fault in plan.faults:
            self._intend(fault)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.time() - self._begin

    def run(self, *, until: Callable[[], bool]) -> None:
        """Do what is due until nothing is left to do and *until* says so; keep every slot filled."""
        ask_at = self.now
        while True:
            if not self._agenda and self.now >= ask_at:
                if until():
                    return
                ask_at = self.now + ASK_S
            while self._agenda and self._agenda[0][0] <= self.now:
                _, _, item = heapq.heappop(self._agenda)
                again = item()
                if again is not None:
                    self._at(self.now + again, item)
            self.processes.supervise()
            time.sleep(TICK_S)

    def heal(self) -> None:
        """Take everything back that might still be in the way."""
        self._lines.heal()
        self._server.heal()

    def note(self) -> None:
        """Write into the history whom each strike could have cost an attempt, and until when."""
        everybody = {step.who for step in self._history.steps}
        for strike in self.strikes:
            kind = strike.fault.kind
            is_for_good = strike.whom != EVERYBODY and kind.endswith("_kill")
            for who in sorted(everybody) if strike.whom == EVERYBODY else [strike.whom]:
                self._history.faults.append(Noted(strike.at, kind, who))
                if strike.ended_at is not None and not is_for_good:
                    self._history.faults.append(Noted(strike.ended_at, f"end of {kind}", who))

    def _intend(self, fault: Fault) -> None:
        self._at(fault.at, lambda: self._strike(fault))

    def _at(self, at: float, item: Item) -> None:
        heapq.heappush(self._agenda, (at, next(self._count), item))

    def _strike(self, fault: Fault) -> float | None:
        if self._is_busy(fault):
            return AGAIN_S
        begin, end = self._acts[fault.kind]
        strike = Strike(fault=fault, whom=EVERYBODY, at=self.now)
        again = begin(strike)
        if again is None:
            self.strikes.append(strike)
            self._at(self.now + fault.lasts, lambda: self._over(strike, end))
        return again

    def _is_busy(self, fault: Fault) -> bool:
        """Whether another one of its sort goes on, because the machine is late: they are not to meet."""
        return any(
            strike.ended_at is None and strike.fault.is_of_processes is fault.is_of_processes for strike in self.strikes
        )

    def _over(self, strike: Strike, end: Callable[[Strike], float | None]) -> float | None:
        again = end(strike)
        if again is None:
            strike.ended_at = self.now
            self._tell(str(strike))
        return again
