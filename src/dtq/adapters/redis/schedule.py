"""Work that is not yet due."""

from collections.abc import Sequence
from datetime import datetime

from dtq.adapters.redis.envelope import Envelope, among
from dtq.adapters.redis.guards import at_version
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.scripts import TAKE_DUE
from dtq.adapters.redis.store import readable
from dtq.domain.entry import LAST_MS, milliseconds, moment
from dtq.domain.task import LeaseToken, Task, TaskId, Version


async def take_due(link: Link, *, now: datetime, leader: LeaseToken, limit: int) -> Sequence[TaskId | Task]:
    """Claim what is due, as the port promises."""
    keys = link.keys
    taken = await link.scripts.run(
        TAKE_DUE,
        keys=(keys.lock, keys.schedule, keys.claimed),
        arguments=(leader, milliseconds(now), limit, keys.task_prefix),
    )
    return [readable(values, task_id=task_id) or TaskId(task_id) for task_id, values in taken]


async def next_due(link: Link) -> datetime | None:
    """Return when the earliest task is due."""
    earliest = await link.client.call("ZRANGE", link.keys.schedule, 0, 0, "WITHSCORES")
    return moment_at(earliest[1]) if earliest else None


def moment_at(score: str) -> datetime:
    """Read a score as a moment: what a stranger scheduled at infinity is due at the last one there is."""
    return moment(int(min(max(float(score), 0), LAST_MS)))


async def forget(link: Link, task_id: TaskId, *, version: Version) -> bool:
    """Drop an id, as the port promises."""

    def drop(envelope: Envelope, name: str) -> None:
        guard = at_version(envelope, link.keys, version, task_id=task_id)
        envelope.add(guards=[guard], steps=[(("ZREM", envelope.key(name), task_id),)])

    return "1" in await link.act_on((link.keys.claimed, link.keys.schedule), drop)


async def return_stale(link: Link, *, claimed_before: datetime, now: datetime, limit: int) -> int:
    """Put old claims back, as the port promises."""
    claimed, schedule, due = link.keys.claimed, link.keys.schedule, str(milliseconds(now))
    highest = f"({milliseconds(claimed_before)}"
    found = await link.client.call("ZRANGEBYSCORE", claimed, "-inf", highest, "WITHSCORES", "LIMIT", 0, limit)

    def put_back(envelope: Envelope, claim: tuple[str, str]) -> None:
        task_id, score = claim
        source = envelope.key(claimed)
        # since the ids were read, another leader may have promoted the task, or claimed it anew
        guard = among((score,), ("ZSCORE", source, task_id))
        steps = [(("ZADD", envelope.key(schedule), due, task_id),), (("ZREM", source, task_id),)]
        envelope.add(guards=[guard], steps=steps)

    outcomes = await link.act_on(zip(found[::2], found[1::2], strict=True), put_back)
    return len(outcomes) - outcomes.count(None)
