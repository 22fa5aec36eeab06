"""Looks at many stream entries without moving their payloads."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from dtq.adapters.redis.codec import Values
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.scripts import PEEK
from dtq.adapters.redis.store import readable
from dtq.domain.task import EntryId, Receipt, Task, TaskId

CHUNK: Final = 100
"""How many entries one script looks at."""


class Range(Struct, frozen=True):
    """A part of a stream, from where to where in the direction of the look."""

    stream: str
    begin: str = "-"
    end: str = "+"


class Peeked(Struct, frozen=True, kw_only=True):
    """An entry of the numbered range, and the snapshot of the task that it names, if that was asked for."""

    number: int
    entry_id: EntryId
    task_id: TaskId
    has_payload: bool
    values: Values | None


def own_task(entry: Peeked, receipt: Receipt) -> Task | None:
    """Return the live task whose one entry this is, or None."""
    task = readable(entry.values or (), task_id=entry.task_id)
    return task if task is not None and task.receipt == receipt and not task.is_terminal else None


async def peek(
    link: Link,
    ranges: Sequence[Range],
    *,
    limit: int,
    records: bool,
    direction: Literal["XRANGE", "XREVRANGE"] = "XRANGE",
) -> Sequence[Peeked]:
    """Return up to *limit* entries, range by range."""
    if not ranges or limit <= 0:
        return ()
    bounds = [bound for one in ranges for bound in (one.begin, one.end)]
    seen = await link.scripts.run(
        PEEK,
        keys=[one.stream for one in ranges],
        arguments=(direction, limit, link.keys.task_prefix, "1" if records else "", *bounds),
    )
    return [
        Peeked(
            number=number - 1,
            entry_id=EntryId(entry_id),
            task_id=TaskId(task_id),
            has_payload=has_payload == 1,
            values=values,
        )
        for number, entry_id, task_id, has_payload, values in seen
    ]


async def walk(
    link: Link,
    wanted: Range,
    *,
    records: bool,
    direction: Literal["XRANGE", "XREVRANGE"] = "XRANGE",
    chunk: int = CHUNK,
) -> AsyncIterator[Sequence[Peeked]]:
    """Go through a range, *chunk* entries at a time."""
    begin = wanted.begin
    while True:
        part = Range(wanted.stream, begin, wanted.end)
        found = await peek(link, [part], limit=chunk, records=records, direction=direction)
        if found:
            yield found
        if len(found) < chunk:
            return
        begin = f"({found[-1].entry_id}"
