"""Events over Pub/Sub, and the audit log."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from dtq.adapters.redis.link import Link
from dtq.adapters.redis.wire import audit_entry, event_of, json_text, pairs
from dtq.domain.audit import AuditEntry
from dtq.domain.events import Event

Message = TypeVar("Message")


@asynccontextmanager
async def listen(
    link: Link, channels: Sequence[str], *, read: Callable[[str], Message | None]
) -> AsyncGenerator[AsyncIterator[Message]]:
    """Receive what *read* can read of what is published on *channels*; other texts are passed over."""
    async with link.client.subscribe(*channels) as texts:
        yield (message async for text in texts if (message := read(text)) is not None)


class RedisEventBus:
    """Events over Pub/Sub."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def publish(self, event: Event) -> None:
        await self._link.client.call("PUBLISH", self._link.keys.events, json_text(event))

    def subscribe(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return listen(self._link, (self._link.keys.events,), read=event_of)


class RedisAuditLog:
    """The audit log as a stream."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def recent(self, *, limit: int) -> Sequence[AuditEntry]:
        found = await self._link.client.call("XREVRANGE", self._link.keys.audit, "+", "-", "COUNT", limit)
        return [audit_entry(pairs(fields)) for _, fields in found]
