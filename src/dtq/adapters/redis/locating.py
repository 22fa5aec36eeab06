"""Where a task stands: its record, then in one step what surrounds it, then a bounded count of what is before it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from dtq.adapters.redis.client import Rejected, Reply, checked
from dtq.adapters.redis.codec import SNAPSHOT, VERSION, UnreadableRecord, task_of
from dtq.adapters.redis.keys import BANDS, GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.peeking import Range, walk
from dtq.adapters.redis.queues import last_delivered, owned_of
from dtq.adapters.redis.schedule import moment_at
from dtq.adapters.redis.store import is_of_another_type
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.standing import Holding, Standing
from dtq.domain.status import Place
from dtq.domain.task import EntryId, Task, TaskId, WorkerId, place_of

LOOKS: Final = 5
"""How often a task is looked at that moves while it is looked at."""

_NOWHERE: Final = EntryId("0-1")
"""An id that finds nothing, since it is the lowest one."""

Replies = Mapping[tuple[str, ...], Reply]


class RedisLocator:
    """A look at one task on a server."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def locate(self, task_id: TaskId, *, count_up_to: int) -> Standing | None:
        for _ in range(LOOKS):
            try:
                task = await self._record(task_id)
            except UnreadableRecord as error:
                return Standing(task=None, unreadable=str(error))
            if task is None:
                return None
            standing = await self._look(task, count_up_to=count_up_to)
            if standing is not None:
                return standing
        raise BrokerUnavailable(f"task {task_id} moves faster than it can be looked at")

    async def _record(self, task_id: TaskId) -> Task | None:
        (reply,) = await self._link.client.pipeline([("HMGET", self._link.keys.task(task_id), *SNAPSHOT)])
        return task_of(str(reply) if is_of_another_type(reply) else checked(reply), task_id=task_id)

    async def _look(self, task: Task, *, count_up_to: int) -> Standing | None:
        """Return where *task* stands, or None where its record has changed since it was read."""
        keys = self._link.keys
        version, paused = ("HGET", keys.task(task.task_id), VERSION), ("EXISTS", keys.paused(task.queue))
        questions = [version, paused, *self._questions(task)]
        answers = await self._link.run(questions, keys=sorted({_key_of(question) for question in questions}))
        replies = dict(zip(questions, answers, strict=True))
        if checked(replies[version]) != task.version:
            return None
        standing = Standing(task=task, paused=checked(replies[paused]) == 1)
        match place_of(task):
            case Place.READY | Place.HELD:
                return await self._among_others(task, standing, replies=replies, count_up_to=count_up_to)
            case Place.SCHEDULE:
                scores = [checked(replies[question]) for question in self._questions(task)]
                due, claimed_at = (None if score is None else moment_at(score) for score in scores)
                is_home = due is not None or claimed_at is not None
                on_loan = claimed_at is not None
                return replace(standing, is_home=is_home, on_loan=on_loan, due=due, claimed_at=claimed_at)
            case Place.DEAD:
                (letter,) = (checked(replies[question]) for question in self._questions(task))
                return replace(standing, is_home=bool(letter))
            case Place.NOWHERE:
                return standing

    def _questions(self, task: Task) -> Sequence[tuple[str, ...]]:
        """Return what is asked of the place that a task should be in."""
        keys, entry_id = self._link.keys, task.entry_id or _NOWHERE
        match place_of(task):
            case Place.SCHEDULE:
                return [("ZSCORE", name, task.task_id) for name in (keys.schedule, keys.claimed)]
            case Place.DEAD:
                letter = task.dlq_entry_id or _NOWHERE
                return [("XRANGE", keys.dead_letters, letter, letter)]
            case Place.READY | Place.HELD:
                own = keys.stream(task.queue, task.priority)
                lengths = [_length_of(stream) for stream in self._higher(task).values()]
                owned = [_owned_in(stream) for stream in self._higher(task).values()]
                return [*lengths, *owned, _entry_in(own, entry_id), _owner_in(own, entry_id), _groups_of(own)]
            case Place.NOWHERE:
                return ()

    def _higher(self, task: Task) -> Mapping[int, str]:
        return {one: self._link.keys.stream(task.queue, one) for one in BANDS if one > task.priority}

    async def _among_others(self, task: Task, standing: Standing, *, replies: Replies, count_up_to: int) -> Standing:
        own, entry_id = self._link.keys.stream(task.queue, task.priority), task.entry_id or _NOWHERE
        lengths = {priority: replies[_length_of(stream)] for priority, stream in self._higher(task).items()}
        spoiled = tuple(priority for priority, length in lengths.items() if is_of_another_type(length))
        found = replies[_entry_in(own, entry_id)]
        if is_of_another_type(found):
            return replace(standing, spoiled=(*spoiled, task.priority))
        standing = replace(standing, spoiled=spoiled, is_home=bool(checked(found)))
        holding = _holding_of(replies[_owner_in(own, entry_id)])
        if holding is not None or not standing.is_home:
            return replace(standing, holding=holding)
        unread = [
            checked(lengths[priority]) - owned_of(replies[_owned_in(stream)])
            for priority, stream in self._higher(task).items()
            if priority not in spoiled
        ]
        before = await self._before(own, entry_id, after=last_delivered(replies[_groups_of(own)]), limit=count_up_to)
        return replace(
            standing,
            above=sum(max(0, one) for one in unread),
            before=min(before, count_up_to),
            before_is_whole=before <= count_up_to,
        )

    async def _before(self, stream: str, entry_id: EntryId, *, after: str, limit: int) -> int:
        """Count what lies between two entries of a stream, and stop beyond *limit*."""
        number = 0
        async for chunk in walk(self._link, Range(stream, f"({after}", f"({entry_id}"), records=False):
            number += len(chunk)
            if number > limit:
                break
        return number


def _length_of(stream: str) -> tuple[str, ...]:
    return ("XLEN", stream)


def _owned_in(stream: str) -> tuple[str, ...]:
    return ("XPENDING", stream, GROUP)


def _entry_in(stream: str, entry_id: EntryId) -> tuple[str, ...]:
    return ("XRANGE", stream, entry_id, entry_id)


def _owner_in(stream: str, entry_id: EntryId) -> tuple[str, ...]:
    return ("XPENDING", stream, GROUP, entry_id, entry_id, "1")


def _groups_of(stream: str) -> tuple[str, ...]:
    return ("XINFO", "GROUPS", stream)


def _key_of(question: tuple[str, ...]) -> str:
    return question[2] if question[0] == "XINFO" else question[1]


def _holding_of(reply: Reply) -> Holding | None:
    """Read who owns an entry; a group that is lost owns nothing."""
    if isinstance(reply, Rejected) and reply.reply_code == "NOGROUP":
        return None
    for _, owner, idle, _ in checked(reply):
        return Holding(owner=WorkerId(owner), idle=timedelta(milliseconds=idle))
    return None
