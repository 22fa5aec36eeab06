"""A look at everything at once: three trips for a few queues, and a bounded number of commands in each for many."""

from collections.abc import Sequence
from typing import Final

from dtq.adapters.redis.client import Rejected, Reply, checked
from dtq.adapters.redis.keys import GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.queues import known_queues, owned_of
from dtq.adapters.redis.wire import heartbeat_of, pairs
from dtq.domain.task import WorkerId
from dtq.ports.survey import QueueFigures, Survey

TRIP: Final = 1000
"""How many commands travel together: more would keep others waiting for their turn."""


class RedisSurveyor:
    """Figures of a server, read in pipelines: nothing of them needs to be of the same moment."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def survey(self, *, limit: int) -> Survey:
        keys = self._link.keys
        names, workers, dead_letters, schedule, claimed = await self._read(
            [
                ("HKEYS", keys.queues),
                ("SMEMBERS", keys.workers),
                ("XLEN", keys.dead_letters),
                ("ZCARD", keys.schedule),
                ("ZCARD", keys.claimed),
            ]
        )
        queues = known_queues(checked(names))[:limit]
        ids = sorted(map(WorkerId, checked(workers)))
        streams = [stream for queue in queues for stream in keys.streams(queue)]
        replies = await self._read(
            [*(("XLEN", stream) for stream in streams), *(("HGETALL", keys.worker(worker)) for worker in ids)]
        )
        lengths = {stream: reply for stream, reply in zip(streams, replies, strict=False) if _is_readable(reply)}
        owned = await self._owned([stream for stream, length in lengths.items() if length])
        heartbeats = [heartbeat_of(pairs(reply)) for reply in replies[len(streams) :] if _is_readable(reply)]
        return Survey(
            queues=[
                QueueFigures(
                    queue=queue,
                    depth=sum(lengths[stream] for stream in keys.streams(queue)),
                    pending=sum(owned.get(stream, 0) for stream in keys.streams(queue)),
                )
                for queue in queues
                if lengths.keys() >= set(keys.streams(queue))
            ],
            scheduled=checked(schedule) + checked(claimed),
            dead_letters=checked(dead_letters),
            heartbeats=[heartbeat for heartbeat in heartbeats if heartbeat is not None],
        )

    async def _owned(self, streams: Sequence[str]) -> dict[str, int]:
        """Count the owned entries of streams that are not empty: where nothing is, nothing is owned."""
        replies = await self._read([("XPENDING", stream, GROUP) for stream in streams])
        return dict(zip(streams, map(owned_of, replies), strict=True))

    async def _read(self, commands: Sequence[Sequence[str]]) -> list[Reply]:
        replies: list[Reply] = []
        for start in range(0, len(commands), TRIP):
            replies += await self._link.client.pipeline(commands[start : start + TRIP])
        return replies


def _is_readable(reply: Reply) -> bool:
    """Tell whether a key holds what it should: one that a stranger has spoilt must not hide all others."""
    return not isinstance(reply, Rejected)
