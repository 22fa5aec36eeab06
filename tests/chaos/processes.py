"""What happens to processes: they are killed, asked to end, and made to stand still."""

import signal
import time
from collections.abc import Callable, Sequence
from typing import Final

from dtq.application.settings import ExitCode
from tests.chaos.deployment import DRAIN_S, Deployment, Slot
from tests.chaos.leader import LeaderSearch
from tests.chaos.strike import Acts, Strike
from tests.simulation.history import Exit, History

GONE_WITHIN_S: Final = DRAIN_S + 15.0
AGAIN_S: Final = 0.1
CANNOT_START: Final = 2
UNSUITABLE: Final = "UNSUITABLE_BROKER"
FORBIDDEN: Final = "FORBIDDEN"
"""How a process ends that begins without a permission that it needs."""


class Processes:
    """Strikes workers and APIs, and fills every slot that has emptied by itself."""

    def __init__(self, deployment: Deployment, *, history: History, now: Callable[[], float]) -> None:
        self._deployment = deployment
        self._history = history
        self._now = now
        self._struck: set[str] = set()
        """The slots that are not filled, or whose process stands still, on purpose."""
        self._searches: dict[int, LeaderSearch] = {}

    def acts(self) -> Acts:
        """How each kind of fault begins and ends."""
        workers, apis = self._deployment.workers, self._deployment.apis
        return {
            "worker_kill": (lambda strike: self._kill(strike, workers), self._refill),
            "worker_term": (lambda strike: self._terminate(strike, workers), self._replace),
            "worker_stop": (lambda strike: self._freeze(strike, workers), self._thaw),
            "leader_kill": (lambda strike: self._to_leader(strike, self._kill), self._refill),
            "leader_stop": (lambda strike: self._to_leader(strike, self._freeze), self._thaw),
            "api_kill": (lambda strike: self._kill(strike, apis), self._refill),
            "api_term": (lambda strike: self._terminate(strike, apis), self._replace),
            "api_stop": (lambda strike: self._freeze(strike, apis), self._thaw),
        }

    def supervise(self) -> None:
        """Fill what has emptied by itself, as an operator's system would."""
        for slot in self._deployment.slots:
            if slot.name not in self._struck and not slot.there.alive():
                self._note_exit(slot)
                self._deployment.fill(slot)

    def stop_all(self) -> None:
        """Ask every process to end, and see that it does."""
        for slot in self._deployment.slots:
            self._struck.add(slot.name)
            slot.there.terminate()
        until = self._now() + GONE_WITHIN_S
        for slot in self._deployment.slots:
            while slot.there.alive() and self._now() < until:
                time.sleep(AGAIN_S)
            self._see_gone(slot)

    def _pick(self, strike: Strike, slots: Sequence[Slot]) -> Slot:
        # whoever stands still already, because the search for the leader took its time, is spared
        free = [slot for slot in slots if slot.name not in self._struck] or list(slots)
        slot = free[strike.fault.whom % len(free)]
        strike.whom = slot.who
        self._struck.add(slot.name)
        return slot

    def _slot_of(self, strike: Strike) -> Slot:
        return next(slot for slot in self._deployment.slots if slot.who == strike.whom)

    def _kill(self, strike: Strike, slots: Sequence[Slot]) -> None:
        self._pick(strike, slots).there.kill()

    def _terminate(self, strike: Strike, slots: Sequence[Slot]) -> None:
        self._pick(strike, slots).there.terminate()

    def _freeze(self, strike: Strike, slots: Sequence[Slot]) -> None:
        self._pick(strike, slots).there.freeze()

    def _to_leader(self, strike: Strike, act: Callable[[Strike, Sequence[Slot]], None]) -> float | None:
        search = self._searches.setdefault(strike.fault.number, LeaderSearch(self._deployment))
        if search.is_on:
            return AGAIN_S
        workers = self._deployment.workers
        act(strike, [slot for slot in workers if slot.name == search.found] or workers)
        return None

    def _refill(self, strike: Strike) -> None:
        slot = self._slot_of(strike)
        self._deployment.fill(slot)
        self._struck.discard(slot.name)

    def _replace(self, strike: Strike) -> float | None:
        slot = self._slot_of(strike)
        if slot.there.alive() and self._now() < strike.at + GONE_WITHIN_S:
            return AGAIN_S
        self._see_gone(slot)
        self._refill(strike)
        return None

    def _thaw(self, strike: Strike) -> None:
        slot = self._slot_of(strike)
        slot.there.thaw()
        self._struck.discard(slot.name)

    def _see_gone(self, slot: Slot) -> None:
        if slot.there.alive():
            self._history.left.append(slot.who)
            slot.there.kill()
        else:
            self._note_exit(slot)

    def _note_exit(self, slot: Slot) -> None:
        code = slot.there.exit_code(within=1.0)
        if code == -signal.SIGTERM and not slot.has_begun:
            # asked to end before Python had even loaded what would have heard it, it has done nothing yet
            code = ExitCode.DRAINED
        how = ExitCode(code).name if code in set(ExitCode) else f"exit code {code}"
        if code == CANNOT_START and UNSUITABLE in slot.there.log:
            how = FORBIDDEN
        self._history.exits.append(Exit(self._now(), slot.who, how))
