"""The memory adapter's server, which is this process."""

from datetime import timedelta

from dtq.adapters.memory.state import State
from dtq.ports.environment import ServerFacts


class MemoryServer:
    """A server that is always there and always suitable."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def inspect(self) -> ServerFacts:
        uptime = self._state.clock.monotonic() - self._state.started_at
        return ServerFacts(description="in this process's memory", uptime=timedelta(seconds=uptime))

    async def prepare(self) -> None:
        """Need nothing: all there is was made with the backend."""

    async def close(self) -> None:
        """Keep everything: what is stored lives as long as the backend."""
