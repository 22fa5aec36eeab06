"""What carries out the requests of many callers, as a test says."""

import asyncio
from collections.abc import Sequence

from dtq.domain.errors import BrokerUnavailable


class Sender:
    """Answers each item with its double, when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.under_way = 0
        self.most_under_way = 0
        self.go = asyncio.Event()
        self.go.set()
        self.poison: int | None = None
        self.error: Exception = BrokerUnavailable("gone")

    async def send(self, items: Sequence[int]) -> Sequence[int]:
        self.batches.append(list(items))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.go.wait()
            if self.poison in items:
                raise self.error
            return [2 * item for item in items]
        finally:
            self.under_way -= 1


class Requests:
    """Raises what it was given, one by one, then answers each item with itself; or nothing while it is stalled."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.sent: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self, items: Sequence[str]) -> Sequence[str]:
        self.sent.append(list(items))
        if self.errors:
            raise self.errors.pop(0)
        await self.go.wait()
        return items
