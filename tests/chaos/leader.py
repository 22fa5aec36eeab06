"""Finds out which worker leads."""

import contextlib
import threading
import time
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from tests.chaos.deployment import Deployment
from tests.chaos.plan import SEEK_S
from tests.judged.system import PLAIN


class LeaderSearch:
    """Looks on until somebody takes what is due, which the leader alone does; ``found`` is the name of its slot."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._until = time.monotonic() + SEEK_S
        self.found: str | None = None
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether it may still find out."""
        return self.found is None and self._thread.is_alive() and time.monotonic() < self._until

    def _look(self) -> None:
        # whatever becomes of the server meanwhile ends the search, and no leader is found
        with contextlib.suppress(RedisError, OSError), Redis.from_url(self._deployment.server.url, **PLAIN) as client:
            address = self._address(client)
            self.found = next((one["user"] for one in client.client_list() if one["addr"] == address), None)

    def _address(self, client: Any) -> str | None:
        keys = self._deployment.system.keys
        with client.monitor() as monitor:
            for seen in monitor.listen():
                if keys.lock in seen["command"] and keys.claimed in seen["command"]:
                    return f"{seen['client_address']}:{seen['client_port']}"
                if time.monotonic() > self._until:
                    return None
        return None
