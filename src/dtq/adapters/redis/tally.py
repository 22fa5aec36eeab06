"""How many tasks of each queue are scheduled, compared with what is noted for it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from dtq.adapters.redis.client import Reply, checked
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.queues import counted, known_queues
from dtq.adapters.redis.wire import pairs
from dtq.domain.errors import BrokerRefused
from dtq.domain.facts import CountFact
from dtq.domain.status import WAITING_FOR_TIME, TaskStatus
from dtq.domain.task import QueueName

EXACT: Final = 400
"""Up to how many scheduled tasks all are read in one step with the counts; it runs some 1,000 short commands."""

MOST: Final = 200_000
"""How many scheduled tasks are counted at most."""

_PAGE: Final = 500
_TRIES: Final = 10
_STATUSES: Final = frozenset(TaskStatus)


class Moving(BrokerRefused):
    """The schedule did not stand still for as long as it takes to count it."""


class Sum(Struct, frozen=True, kw_only=True):
    """What is noted, and how many ids there are in all, at one moment."""

    noted: Mapping[str, str]
    members: int

    @property
    def surplus(self) -> int:
        """By how much the counts together are too high."""
        return sum(counted(text) for text in self.noted.values()) - self.members


async def count_scheduled(link: Link) -> AsyncIterator[Sequence[CountFact]]:
    """Compare the counts, all of them. Raises Moving where that cannot be done exactly."""
    for _ in range(_TRIES):
        found = await _count_once(link)
        if found is not None:
            yield found
            return
    raise Moving("delayed tasks and retries come and go faster than they can be counted; try at a quieter moment")


async def _count_once(link: Link) -> Sequence[CountFact] | None:
    keys = link.keys
    sizes = await link.client.pipeline([("ZCARD", keys.schedule), ("ZCARD", keys.claimed)])
    if sum(map(checked, sizes)) <= EXACT:
        return await _exactly(link)
    before = await _sum(link)
    if before.members > MOST:
        raise Moving(f"more than {MOST} tasks are scheduled")
    by_queue, strays = await _walked(link)
    after = await _sum(link)
    facts = _facts(after.noted, by_queue)
    if before.surplus == after.surplus == 0 and all(_is_number(fact.text) for fact in facts):
        # whatever the walk has missed or seen twice: the counts together are right
        return ()
    wrong = [fact for fact in facts if not _is_number(fact.text) or int(fact.text) != fact.counted]
    off = sum(counted(fact.text) - fact.counted for fact in wrong)
    # tasks of a queue that is in no list are noted for none
    unlisted = sum(number for queue, number in by_queue.items() if queue not in after.noted)
    return wrong if before == after and off == after.surplus + strays + unlisted else None


async def _exactly(link: Link) -> Sequence[CountFact] | None:
    """Count in one step; None where an id has moved since the ids were read."""
    keys = link.keys
    homes = {
        name: checked(ids)
        for name, ids in zip(
            (keys.schedule, keys.claimed),
            await link.client.pipeline([("ZRANGE", name, 0, -1) for name in (keys.schedule, keys.claimed)]),
            strict=True,
        )
    }
    members = [(name, task_id) for name, ids in homes.items() for task_id in ids]
    # what is on loan and scheduled as well is one task
    tasks = [*dict.fromkeys(task_id for _, task_id in members)]
    commands: list[Sequence[str]] = [("HGETALL", keys.queues), ("ZCARD", keys.schedule), ("ZCARD", keys.claimed)]
    commands += [("ZSCORE", name, task_id) for name, task_id in members]
    commands += [_asked(link, task_id) for task_id in tasks]
    touched = (keys.queues, *homes, *(keys.task_prefix + task_id for task_id in tasks))
    noted, schedule, claimed, *rest = await link.run(commands, keys=touched)
    scores, queues = rest[: len(members)], rest[len(members) :]
    if schedule + claimed != len(members) or None in scores:
        return None
    return _facts(pairs(checked(noted)), _by_queue(map(checked, queues)))


async def _sum(link: Link) -> Sum:
    keys = link.keys
    commands = [("HGETALL", keys.queues), ("ZCARD", keys.schedule), ("ZCARD", keys.claimed)]
    noted, schedule, claimed = await link.run(commands, keys=(keys.queues, keys.schedule, keys.claimed))
    return Sum(noted=pairs(checked(noted)), members=schedule + claimed)


async def _walked(link: Link) -> tuple[Counter[str], int]:
    """Count page by page; return also how many members are no waiting task's, or are another of one."""
    by_queue, seen, ids_seen = Counter[str](), 0, set[str]()
    for name in (link.keys.schedule, link.keys.claimed):
        first = 0
        while ids := await link.client.call("ZRANGE", name, first, first + _PAGE - 1):
            fresh = [one for one in ids if one not in ids_seen]
            by_queue += _by_queue(map(checked, await link.client.pipeline([_asked(link, one) for one in fresh])))
            ids_seen |= {*fresh}
            first += len(ids)
        seen += first
    return by_queue, seen - by_queue.total()


def _asked(link: Link, task_id: str) -> Sequence[str]:
    return ("HMGET", link.keys.task_prefix + task_id, "queue", "status")


def _by_queue(replies: Iterable[Reply]) -> Counter[str]:
    """Count the tasks that wait for their time by the queues that their records name.

    One whose status is none waited before somebody spoiled that, and waits again once it is mended.
    """
    found = [reply for reply in replies if reply[1] in WAITING_FOR_TIME or reply[1] not in _STATUSES]
    return Counter(queue for queue, _ in found if queue is not None)


def _facts(noted: Mapping[str, str], by_queue: Mapping[str, int]) -> Sequence[CountFact]:
    return [
        CountFact(queue=QueueName(queue), text=noted[queue], counted=by_queue.get(queue, 0))
        for queue in known_queues([*noted])
    ]


def _is_number(text: Reply) -> bool:
    return bool(str(counted(text)) == text)
