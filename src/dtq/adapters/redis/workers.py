"""Workers, their leader, and what they are told at once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from dtq.adapters.redis.client import checked
from dtq.adapters.redis.envelope import FIRST_REPLY, Argument, Envelope, Guard, Step, among
from dtq.adapters.redis.events import listen
from dtq.adapters.redis.guards import NONE, ONE
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.steps import milliseconds_text
from dtq.adapters.redis.store import is_of_another_type
from dtq.adapters.redis.wire import flat, heartbeat_fields, heartbeat_of, json_text, pairs, signal_of
from dtq.domain.entry import milliseconds
from dtq.domain.events import Event
from dtq.domain.task import LeaseToken, QueueName, WorkerId
from dtq.domain.workers import Heartbeat
from dtq.ports.workers import Signal


class RedisWorkers:
    """Signs of life on Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def announce(self, heartbeat: Heartbeat, *, expires_in: timedelta) -> bool:
        def store(envelope: Envelope) -> None:
            key = envelope.key(self._link.keys.worker(heartbeat.worker_id))
            fields: list[Argument] = [*flat(heartbeat_fields(heartbeat))]
            steps: list[Step] = [
                (("SADD", envelope.key(self._link.keys.workers), heartbeat.worker_id),),
                (("HSET", key, *fields),),
                (("PEXPIRE", key, milliseconds_text(expires_in)),),
            ]
            envelope.add(guards=_are_free_or_own(key, heartbeat), steps=steps)

        return await self._link.act(store) is not None

    async def get(self, worker: WorkerId) -> Heartbeat | None:
        (reply,) = await self._link.client.pipeline([("HGETALL", self._link.keys.worker(worker))])
        return None if is_of_another_type(reply) else heartbeat_of(pairs(checked(reply)))

    async def known(self) -> Sequence[WorkerId]:
        return sorted(map(WorkerId, await self._link.client.call("SMEMBERS", self._link.keys.workers)))

    async def remove(self, worker: WorkerId, *, event: Event) -> bool:
        def forget(envelope: Envelope) -> None:
            guard = among(NONE, ("EXISTS", envelope.key(self._link.keys.worker(worker))))
            steps: list[Step] = [
                (("SREM", envelope.key(self._link.keys.workers), worker),),
                self._link.writer(envelope).publish(event, guard=among(ONE, FIRST_REPLY)),
            ]
            envelope.add(guards=[guard], steps=steps)

        return await self._link.act(forget) == "1"

    async def retire(self, heartbeat: Heartbeat, *, event: Event) -> bool:
        def forget(envelope: Envelope) -> None:
            key = envelope.key(self._link.keys.worker(heartbeat.worker_id))
            steps: list[Step] = [
                (("SREM", envelope.key(self._link.keys.workers), heartbeat.worker_id),),
                (("DEL", key),),
                self._link.writer(envelope).publish(event),
            ]
            envelope.add(guards=_are_free_or_own(key, heartbeat), steps=steps)

        return await self._link.act(forget) is not None


def _are_free_or_own(key: int, heartbeat: Heartbeat) -> Sequence[Guard]:
    """Require that no heartbeat is stored, by the number of its key, or one of the very worker of this one."""
    return [
        among(("", str(milliseconds(heartbeat.started_at))), ("HGET", key, "started_at")),
        among(("", heartbeat.life), ("HGET", key, "life")),
    ]


class RedisLeadership:
    """The lead, as a lock on Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def acquire(self, token: LeaseToken, *, term: timedelta) -> bool:
        def take(envelope: Envelope) -> None:
            lock = envelope.key(self._link.keys.lock)
            steps: list[Step] = [(("SET", lock, token, "PX", milliseconds_text(term)),)]
            envelope.add(guards=[among(("", token), ("GET", lock))], steps=steps)

        return await self._link.act(take) is not None

    async def resign(self, token: LeaseToken) -> bool:
        def give_up(envelope: Envelope) -> None:
            lock = envelope.key(self._link.keys.lock)
            envelope.add(guards=[among((token,), ("GET", lock))], steps=[(("DEL", lock),)])

        return await self._link.act(give_up) is not None


class RedisSignals:
    """Signals over Pub/Sub."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def tell_worker(self, worker: WorkerId, signal: Signal) -> None:
        await self._link.client.call("PUBLISH", self._link.keys.worker_channel(worker), json_text(signal))

    async def tell_queue(self, queue: QueueName, signal: Signal) -> None:
        await self._link.client.call("PUBLISH", self._link.keys.queue_channel(queue), json_text(signal))

    def listen(self, worker: WorkerId, *, queue: QueueName) -> AbstractAsyncContextManager[AsyncIterator[Signal]]:
        channels = (self._link.keys.worker_channel(worker), self._link.keys.queue_channel(queue))
        return listen(self._link, channels, read=signal_of)
