"""Whether a worker's id is still its own: another process may have taken it while this one stood still."""

from typing import Protocol


class Tenure(Protocol):
    """The claim of one worker on its id. Two workers of one id own the same entries, so only one of them may act."""

    async def ensure(self) -> None:
        """Return at once while the last sign of life lasts; else give one. Raises WorkerReplaced."""
        ...

    async def renew(self) -> None:
        """Give a sign of life now, so that nobody takes the id for as long as that lasts. Raises WorkerReplaced."""
        ...


class Undisputed:
    """The tenure of a worker that is alone on its broker, such as a test's."""

    async def ensure(self) -> None:
        """Have it."""

    async def renew(self) -> None:
        """Have it still."""
