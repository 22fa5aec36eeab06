"""What happens to the line between one process and Redis."""

from collections.abc import Callable
from typing import Final

from tests.chaos.deployment import Deployment
from tests.chaos.strike import Act, Acts, Strike
from tests.servers.proxy import Proxy

LATENCY_S: Final = 0.1
"""How long a message takes, either way."""

STEP: Final = b"EVALSHA"
LOST: Final = 6
"""How many steps in a row lose their request or their reply."""


class Lines:
    """Strikes those processes that have a line of their own."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def acts(self) -> Acts:
        """How each kind of fault begins and ends."""
        return {
            "slow_link": (self._to_line(lambda line: line.delay(LATENCY_S)), self._mend),
            "cut_link": (self._to_line(Proxy.cut), self._mend),
            "down_link": (self._to_line(Proxy.refuse), self._mend),
            "drop_replies": (self._to_line(lambda line: line.drop_replies(LOST, word=STEP)), self._mend),
            "drop_requests": (self._to_line(lambda line: line.drop_requests(LOST, word=STEP)), self._mend),
            "half_open_link": (self._to_line(Proxy.hold), self._mend),
        }

    def heal(self) -> None:
        """Let everything pass again."""
        for slot in self._deployment.lines:
            slot.own_line.heal()

    def _to_line(self, act: Callable[[Proxy], object]) -> Act:
        def begin(strike: Strike) -> None:
            slots = self._deployment.lines
            slot = slots[strike.fault.whom % len(slots)]
            strike.whom = slot.who
            act(slot.own_line)

        return begin

    def _mend(self, _: Strike) -> None:
        self.heal()
