"""Changes made real and entries taken in one call, for a worker whose slots become free by what it records."""

from collections.abc import Sequence

from msgspec.structs import replace

from dtq.adapters.redis import ready, store
from dtq.adapters.redis.client import MAX_REASON, Reply
from dtq.adapters.redis.description import Forms
from dtq.adapters.redis.envelope import Envelope
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.scripts import TURN
from dtq.domain.change import Change
from dtq.domain.text import clean
from dtq.ports.answers import Applied, CommitAnswer
from dtq.ports.broker import Fetch


async def fetch_after(link: Link, forms: Forms, changes: Sequence[Change], sweep: ready.Sweep) -> Fetch:
    """Make changes real and take entries, as the port promises; in two calls or more what is too large for one."""
    first, *others = store.packed(forms, changes)
    envelope, acts = first
    if others or envelope.needs_memory:
        return await _one_after_the_other(link, forms, changes, sweep)
    replies, found = await _called(link, envelope, sweep)
    answers: Sequence[CommitAnswer] = store.understood(replies, acts)
    if isinstance(found, str):
        return Fetch(deliveries=(), now=link.clock.now(), faults=[clean(found, limit=MAX_REASON)], answers=answers)
    _, _, *taken = found
    return replace(ready.fetched(link, sweep, taken), answers=answers)


async def _called(link: Link, envelope: Envelope, sweep: ready.Sweep) -> tuple[Sequence[Reply], Reply]:
    keys, arguments = sweep.keys(link.keys), sweep.arguments(link.keys)
    *replies, found = await link.scripts.run(
        TURN,
        keys=(*keys, *envelope.keys),
        arguments=(len(keys), len(arguments), *arguments, *envelope.arguments()),
    )
    return replies, found


async def _one_after_the_other(link: Link, forms: Forms, changes: Sequence[Change], sweep: ready.Sweep) -> Fetch:
    answers = await store.commit(link, forms, changes)
    room = sweep.limit + sum(isinstance(answer, Applied) for answer in answers)
    return replace(await ready.fetch(link, replace(sweep, limit=max(0, room))), answers=answers)
