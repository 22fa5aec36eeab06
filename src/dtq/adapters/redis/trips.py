"""Many commands and looks on their way: so many together that few trips are made, and nobody else waits for long."""

from collections.abc import Iterable, Sequence

from dtq.adapters.redis.client import Reply
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.looks import Look
from dtq.adapters.redis.survey import TRIP
from dtq.domain.facts import Fact


async def through(link: Link, commands: Sequence[Sequence[str]]) -> list[Reply]:
    """Return the replies to *commands*, each of its own moment."""
    replies: list[Reply] = []
    for first in range(0, len(commands), TRIP):
        replies += await link.client.pipeline(commands[first : first + TRIP])
    return replies


async def looked_at(link: Link, looks: Iterable[Look]) -> list[Fact]:
    """Return the facts of what is there, in the order of *looks*."""
    wanted = list(looks)
    left = iter(await through(link, [command for look in wanted for command in look.commands]))
    facts = [look.read([next(left) for _ in look.commands]) for look in wanted]
    return [fact for fact in facts if fact is not None]
