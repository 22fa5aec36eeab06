"""Dead letters that the records of their tasks do not name any more, found by going through all of them."""

from collections.abc import Mapping, Sequence

from dtq.adapters.redis.link import Link
from dtq.adapters.redis.peeking import Range, walk
from dtq.adapters.redis.task_pages import LOOKED_AT
from dtq.domain.facts import Fact, TaskFact
from dtq.domain.status import Place
from dtq.domain.task import EntryId, TaskId, place_of


async def unnamed(link: Link, facts: Sequence[Fact]) -> Mapping[TaskId, EntryId]:
    """Find the latest dead letter of each task among *facts* that is dead and names none, in one walk for all."""
    wanted = {one.task_id for one in facts if isinstance(one, TaskFact) and _is_lost(one)}
    found: dict[TaskId, EntryId] = {}
    if not wanted:
        return found
    async for chunk in walk(
        link, Range(link.keys.dead_letters, "+", "-"), records=False, direction="XREVRANGE", chunk=LOOKED_AT
    ):
        for entry in chunk:
            if entry.task_id in wanted:
                found.setdefault(entry.task_id, entry.entry_id)
        if wanted <= found.keys():
            break
    return found


def _is_lost(fact: TaskFact) -> bool:
    task = fact.record.task
    is_dead = task is not None and place_of(task) is Place.DEAD
    return is_dead and task is not None and task.dlq_entry_id is None and fact.letter is None
