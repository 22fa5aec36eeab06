"""Events over Pub/Sub, and the audit log."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Generic, TypeVar

from dtq.adapters.redis.link import Link
from dtq.adapters.redis.wire import audit_entry, event_of, json_text, pairs
from dtq.domain.audit import AuditEntry
from dtq.domain.events import Event

CHUNK: Final = 500
"""How many audit entries are read in one trip."""

Message = TypeVar("Message")


class Messages(Generic[Message]):
    """What *read* can read of a subscription's texts; others are passed over."""

    def __init__(self, texts: AsyncIterator[str], *, read: Callable[[str], Message | None]) -> None:
        self._texts = texts
        self._read = read

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        """Return the next message. Raises BrokerUnavailable where the subscription is lost."""
        while True:
            message = self._read(await anext(self._texts))
            if message is not None:
                return message


@asynccontextmanager
async def listen(
    link: Link, channels: Sequence[str], *, read: Callable[[str], Message | None]
) -> AsyncGenerator[AsyncIterator[Message]]:
    """Receive what is published on *channels* from the moment the context is entered."""
    async with link.client.subscribe(*channels) as texts:
        yield Messages(texts, read=read)


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
        entries: list[AuditEntry] = []
        begin, size = "+", min(limit, CHUNK)
        while len(entries) < limit:
            chunk = await self._link.client.call("XREVRANGE", self._link.keys.audit, begin, "-", "COUNT", size)
            read = [audit_entry(pairs(fields)) for _, fields in chunk]
            # what somebody else wrote there hides nothing of what was done
            entries += [entry for entry in read if entry is not None]
            if len(chunk) < size:
                break
            begin, size = f"({chunk[-1][0]}", CHUNK
        return entries[:limit]

    async def record(self, entry: AuditEntry) -> None:
        await self._link.act(lambda envelope: envelope.add(steps=[self._link.writer(envelope).audit(entry)]))
