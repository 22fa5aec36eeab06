"""Whoever does the harm that a plan has, at its time, and takes it back when it is over."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from tests.simulation.client import Client
from tests.simulation.history import Fault
from tests.simulation.plan import Disaster
from tests.simulation.process import Process
from tests.simulation.server import Server, Trap
from tests.simulation.wire import FAIR, Weather, Wire

LOSSY: Final = Weather(lost_requests=0.15, lost_replies=0.15, longest=0.05, lost_signals=0.3)
SLOW: Final = Weather(slow=0.3, longest=0.3)
DEAF: Final = Weather(lost_signals=1.0)
TRAPPED: Final = ("fetch", "fetch", "commit", "commit", "commit", "wait", "take_due", "owned", "release", "create")
"""The calls after which somebody may be hit at once."""
ASKED: Final = ("create", "create", "create", "load", "commit", "pause")
"""The calls after which a client may be hit."""
BEFORE_A_STEP: Final = ("fetch", "fetch", "fetch", "take_due", "load", "undelivered", "owned", "extend")
"""The calls of which the answers are decided about; what is decided may be late."""
DAY_S: Final = 86_400.0

Deeds = dict[str, Callable[[Disaster], tuple[str, Callable[[], None]]]]
"""What is done for each kind of disaster: it says to whom, and how that is taken back."""


class Nemesis:
    """Does harm. *staff* is who works now, *clients* who asks, *wires* every connection there is.

    *hire* begins one more worker, *crash* ends a client.
    """

    def __init__(
        self,
        server: Server,
        *,
        staff: dict[str, Process],
        clients: Sequence[Client],
        wires: Callable[[], list[list[Wire]]],
        hire: Callable[[str], None],
        crash: Callable[[Client], None],
    ) -> None:
        self._server = server
        self._staff = staff
        self._wires = wires
        self._hire = hire
        self._clients = clients
        self._crash = crash
        self._loop = server.loop
        self._do = self._deeds() | self._traps()

    def _deeds(self) -> Deeds:
        return {
            "kill": self._kill,
            "retire": self._retire,
            "pause": lambda disaster: self._pause(self._one(disaster)),
            "usurp": self._usurp,
            "pause_leader": lambda disaster: self._pause(self._leader(disaster)),
            "block_leader": self._block_leader,
            "down": self._down,
            "lossy": lambda disaster: self._weather(disaster, LOSSY),
            "slow": lambda disaster: self._weather(disaster, SLOW),
            "deaf": lambda disaster: self._weather(disaster, DEAF),
            "cut": self._cut,
            "server_pause": self._server_pause,
            "server_restart": self._server_restart,
            "clock_ahead": lambda disaster: self._step(disaster.lasts),
            "clock_back": lambda disaster: self._step(-disaster.lasts),
            "memory_full": self._memory_full,
            "half_step": self._half_step,
            "wipe": self._wipe,
            "slow_all": self._slow_all,
            "host_clock": self._host_clock,
            "kill_client": self._kill_client,
        }

    def _traps(self) -> Deeds:
        return {
            "trap_client": lambda disaster: self._trap(disaster, self._kill_client_that_asks, among=ASKED),
            "trap_late": lambda disaster: self._trap(disaster, self._delay_whoever, among=BEFORE_A_STEP, times=2),
            "trap_kill": lambda disaster: self._trap(disaster, self._kill_whoever),
            "trap_leader": lambda disaster: self._trap(disaster, self._pause_whoever, among=("take_due",)),
            "trap_pause": lambda disaster: self._trap(disaster, self._pause_whoever),
            "trap_unanswered": lambda disaster: self._trap(disaster, self._leave_unanswered),
        }

    def begin(self, disasters: tuple[Disaster, ...]) -> None:
        """Do each at its time."""
        for disaster in disasters:
            self._loop.call_at(disaster.at, self._strike, disaster)

    def _strike(self, disaster: Disaster) -> None:
        whom, heal = self._do[disaster.what](disaster)
        history = self._server.history
        history.faults.append(Fault(self._loop.time(), disaster.what, whom))
        lasts = disaster.armed if disaster.what.startswith("trap") else disaster.lasts
        self._loop.call_later(lasts, self._heal, disaster.what, whom, heal)

    def _heal(self, what: str, whom: str, heal: Callable[[], None]) -> None:
        heal()
        self._server.history.faults.append(Fault(self._loop.time(), f"end of {what}", whom))

    def _one(self, disaster: Disaster) -> Process:
        staff = list(self._staff.values())
        return staff[int(disaster.whom * len(staff))]

    def _leader(self, disaster: Disaster) -> Process:
        leading = [one for one in self._staff.values() if one.name == self._server.leader]
        return leading[0] if leading else self._one(disaster)

    def _kill(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        process = self._one(disaster)
        process.kill()
        return process.name, _nothing

    def _retire(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        process = self._one(disaster)
        process.request_stop()
        return process.name, _nothing

    def _pause(self, process: Process) -> tuple[str, Callable[[], None]]:
        process.stop()
        return process.name, process.go_on

    def _usurp(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        """Let a worker stand still that somebody takes for dead, and puts another one in the place of."""
        process = self._one(disaster)
        process.stop()
        self._hire(process.hiring.slot)
        return process.name, process.go_on

    def _block_leader(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        process = self._leader(disaster)
        process.stop_main()
        return process.name, process.go_on_main

    def _down(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        wires = self._some(disaster)
        for wire in wires:
            wire.downs += 1
            wire.cut()

        def heal() -> None:
            for wire in wires:
                wire.downs -= 1

        return wires[0].name, heal

    def _weather(self, disaster: Disaster, weather: Weather) -> tuple[str, Callable[[], None]]:
        wires = self._some(disaster)
        for wire in wires:
            wire.weather = replace(weather)

        def heal() -> None:
            for wire in wires:
                wire.weather = FAIR

        return wires[0].name, heal

    def _some(self, disaster: Disaster) -> list[Wire]:
        wires = self._wires()
        return wires[int(disaster.whom * len(wires))]

    def _cut(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        wires = self._some(disaster)
        for wire in wires:
            wire.reset()
        return wires[0].name, _nothing

    def _server_pause(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        del disaster
        self._loop.stop_actor(self._server.actor)
        return "server", lambda: self._loop.go_on(self._server.actor)

    def _server_restart(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        del disaster
        self._server.downs += 1
        for wires in self._wires():
            for wire in wires:
                wire.reset()
        return "server", self._server.restart

    def _step(self, seconds: float) -> tuple[str, Callable[[], None]]:
        self._server.clock.step(seconds)
        return f"by {seconds:.3f} s", _nothing

    def _memory_full(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        del disaster
        faults = self._server.state.faults
        faults.memory_is_full = True

        def heal() -> None:
            faults.memory_is_full = False

        return "server", heal

    def _half_step(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        self._server.stops_next_commit_after = int(disaster.whom * 5)
        return "server", _nothing

    def _trap(
        self,
        disaster: Disaster,
        spring: Callable[[Disaster, str], None],
        *,
        among: Sequence[str] = TRAPPED,
        times: int = 1,
    ) -> tuple[str, Callable[[], None]]:
        at = among[int(disaster.whom * len(among))]

        def sprung(who: str) -> None:
            self._server.history.faults.append(Fault(self._loop.time(), f"{disaster.what} at {at}", who))
            spring(disaster, who)

        trap = Trap(at, sprung, times=times)
        traps = self._server.traps
        traps.append(trap)
        return "whoever comes", lambda: traps.remove(trap) if trap in traps else None

    def _kill_whoever(self, disaster: Disaster, who: str) -> None:
        del disaster
        for process in (one for one in self._staff.values() if who in {wire.name for wire in one.wires}):
            process.kill()

    def _pause_whoever(self, disaster: Disaster, who: str) -> None:
        for process in (one for one in self._staff.values() if who in {wire.name for wire in one.wires}):
            process.stop()
            self._loop.call_later(disaster.lasts, process.go_on)

    def _kill_client(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        alive = [client for client in self._clients if not client.is_over]
        if not alive:
            return "nobody", _nothing
        client = alive[int(disaster.whom * len(alive))]
        self._crash(client)
        return client.name, _nothing

    def _kill_client_that_asks(self, disaster: Disaster, who: str) -> None:
        """Let a client end after what it asked for was done, and before it hears of that."""
        del disaster
        for client in [client for client in self._clients if client.name == who and not client.is_over]:
            self._crash(client)

    def _delay_whoever(self, disaster: Disaster, who: str) -> None:
        """Let what somebody decides now be asked for only when it may be too late for that."""
        for wire in (wire for wires in self._wires() for wire in wires if wire.name == who):
            wire.next_request_is_late = disaster.lasts

    def _slow_all(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        del disaster
        for wire in (wire for wires in self._wires() for wire in wires):
            wire.weather = replace(SLOW)

        def heal() -> None:
            for wire in (wire for wires in self._wires() for wire in wires):
                wire.weather = FAIR

        return "everybody", heal

    def _host_clock(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        """Set the clock of one host ahead, or back: of that nothing may depend."""
        wires = self._some(disaster)
        wires[0].host.ahead += (disaster.whom - 0.5) * 2 * DAY_S
        return f"of {wires[0].name}", _nothing

    def _leave_unanswered(self, disaster: Disaster, who: str) -> None:
        del disaster
        for wire in (wire for wires in self._wires() for wire in wires if wire.name == who):
            wire.loses_next_reply = True

    def _wipe(self, disaster: Disaster) -> tuple[str, Callable[[], None]]:
        del disaster
        self._server.wipe()
        self._server.history.wiped_at = self._loop.time()
        return "server", _nothing


def _nothing() -> None:
    """Heal nothing: what was done was done in a moment."""
