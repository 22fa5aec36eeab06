"""What happens to Redis: it ends, stands still, forgets its scripts, is full, and forbids a command."""

from typing import Any, Final

from tests.chaos.deployment import Deployment, Slot
from tests.chaos.strike import Acts, Strike, nothing

FULL: Final = str(1024 * 1024)
"""Less than is in use already."""


class Server:
    """Strikes the server, and all that use it."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    @property
    def _redis(self) -> Any:
        """A client of the present server."""
        return self._deployment.system.redis

    def acts(self) -> Acts:
        """How each kind of fault begins and ends."""
        it = self._deployment
        return {
            "redis_kill": (lambda _: it.server.kill(), lambda _: it.server.restart()),
            "redis_shutdown": (lambda _: it.server.stop(), lambda _: it.server.restart()),
            "redis_stop": (lambda _: it.server.pause(), lambda _: it.server.resume()),
            "client_kill": (self._cut, nothing),
            "client_pause": (self._pause, nothing),
            "script_flush": (self._forget_scripts, nothing),
            "memory_full": (lambda _: self._limit(FULL), lambda _: self._limit("0")),
            "deny_worker": (lambda strike: self._deny(strike, self._deployment.workers), self._give_back),
            "deny_api": (lambda strike: self._deny(strike, self._deployment.apis), self._give_back),
        }

    def heal(self) -> None:
        """Take everything back that might still be in the way."""
        self._limit("0")
        for slot in self._deployment.slots:
            self._redis.execute_command("ACL", "SETUSER", slot.name, "+@all")

    def _limit(self, most: str) -> None:
        self._redis.config_set("maxmemory", most)

    def _pause(self, strike: Strike) -> None:
        self._redis.client_pause(int(1000 * strike.fault.lasts))

    def _forget_scripts(self, _: Strike) -> None:
        self._redis.script_flush()

    def _cut(self, _: Strike) -> None:
        for kind in ("normal", "pubsub"):
            self._redis.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")

    def _deny(self, strike: Strike, slots: list[Slot]) -> None:
        slot = slots[strike.fault.whom % len(slots)]
        strike.whom = slot.who
        self._redis.execute_command("ACL", "SETUSER", slot.name, f"-{strike.fault.detail}")

    def _give_back(self, _: Strike) -> None:
        self.heal()
