"""Hearing every event that a backend publishes while a test acts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dtq.domain.events import Event, EventType
from dtq.domain.task import TaskId
from tests.contract.harness import Harness
from tests.factories import an_event


class Recording:
    """The events of one subscription, read up to a mark whenever a test asks."""

    def __init__(self, harness: Harness, events: AsyncIterator[Event]) -> None:
        self._harness = harness
        self._events = events
        self._heard: list[Event] = []

    async def heard(self) -> list[Event]:
        """Return every event since the recording began: a mark is published, and all that comes before it is it."""
        mark = an_event()
        await self._harness.backend.events.publish(mark)
        async with asyncio.timeout(10):
            while (event := await anext(self._events)) != mark:
                self._heard.append(event)
        return list(self._heard)

    async def types(self, task_id: TaskId) -> list[EventType]:
        """Return the types of one task's events, in the order in which they were heard."""
        return [event.type for event in await self.heard() if event.task_id == task_id]


@asynccontextmanager
async def recording(harness: Harness) -> AsyncIterator[Recording]:
    """Listen from now on."""
    async with harness.backend.events.subscribe() as events:
        yield Recording(harness, events)
