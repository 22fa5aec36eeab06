"""Up to where the groups of a queue have read, and how one that is beyond the end of its stream is put back."""

from collections.abc import Sequence

from dtq.adapters.redis.client import Rejected, Reply, checked
from dtq.adapters.redis.envelope import Envelope, among
from dtq.adapters.redis.guards import NONE
from dtq.adapters.redis.keys import BANDS, GROUP, Keyspace
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.looks import Look, is_missing, last_delivered, last_id
from dtq.adapters.redis.store import is_of_another_type
from dtq.adapters.redis.task_looks import position
from dtq.domain.facts import Fact, ReadingFact
from dtq.domain.task import QueueName

_BEGINNING = "0-0"


def at_reading(keys: Keyspace, queue: QueueName) -> Look:
    """Look up to where the groups of a queue have read. Raises Rejected where that may not be asked."""
    streams = keys.streams(queue)
    commands = [command for stream in streams for command in _asked(stream)]

    def read(replies: Sequence[Reply]) -> Fact | None:
        both = zip(BANDS, replies[::2], replies[1::2], strict=True)
        return ReadingFact(queue, tuple(priority for priority, state, groups in both if _is_ahead(state, groups)))

    return Look(streams, commands, read)


async def rewind(link: Link, queue: QueueName, *, priority: int) -> bool:
    """Put a group back as the port promises."""
    stream = link.keys.stream(queue, priority)
    state, groups, owned = await link.run([*_asked(stream), ("XPENDING", stream, GROUP)], keys=(stream,))
    if not _is_ahead(state, groups):
        return False
    _, _, last, *_ = checked(owned)

    def put_back(envelope: Envelope) -> None:
        name, first = envelope.key(stream), f"({last}" if last else "-"
        # whoever has read on since then keeps what it owns: nothing of that is delivered again
        guard = among(NONE, ("XPENDING", name, GROUP, first, "+", "1"))
        envelope.add(guards=[guard], steps=[(("XGROUP", "SETID", name, GROUP, last or _BEGINNING),)])

    return await link.act(put_back) is not None


def _asked(stream: str) -> Sequence[Sequence[str]]:
    return ("XINFO", "STREAM", stream), ("XINFO", "GROUPS", stream)


def _is_ahead(state: Reply, groups: Reply) -> bool:
    if isinstance(state, Rejected) and (is_missing(state) or is_of_another_type(state)):
        return False
    read = last_delivered(groups)
    return bool(read) and position(read) > position(last_id(checked(state)))
