"""What is read in several commands while others act: nothing twice, nothing by two moments, nothing that has moved."""

from collections.abc import Sequence
from typing import Any

import pytest

from dtq.adapters.redis import queues, ready, tally
from dtq.adapters.redis.client import Rejected, Reply
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.peeking import Peeked, peek
from dtq.domain.entry import moment
from dtq.domain.facts import CountFact, Denied
from dtq.domain.task import QueueName
from tests.adapters.redis.schema import Schema
from tests.contract.examining import told
from tests.contract.steps import claim, now, promote, seconds, submit, take
from tests.factories import QUEUE, WORKER

COUNTS = "counts of scheduled tasks"


async def counts(schema: Schema) -> list[tuple[str, int]]:
    return [(one.text, one.counted) for one in await told(schema.harness) if isinstance(one, CountFact)]


async def denied(schema: Schema) -> list[Denied]:
    return [one for one in await told(schema.harness) if isinstance(one, Denied)]


async def test_pages_of_what_is_owned_do_not_overlap(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "PAGE", 2)
    receipts = [(await submit(schema.harness)).receipt for _ in range(5)]
    await take(schema.harness)

    assert receipts == list(await schema.harness.backend.broker.owned(QUEUE, worker=WORKER))


async def test_a_claim_is_returned_once_it_is_older_than_asked_for(schema: Schema) -> None:
    harness = schema.harness
    task = await claim(harness, await submit(harness, delay=seconds(60)))
    claimed_at = moment(int(await schema.call("ZSCORE", schema.keys.claimed, task.task_id)))
    give_back = harness.backend.broker.return_stale

    assert 0 == await give_back(claimed_before=claimed_at, now=now(harness), limit=9)
    assert 1 == await give_back(claimed_before=claimed_at + seconds(0.001), now=now(harness), limit=9)


async def test_an_entry_that_becomes_its_tasks_own_meanwhile_is_not_dropped(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await submit(schema.harness)
    record, aside = schema.keys.task(task.task_id), f"{schema.prefix}:op:aside"
    assert task.receipt is not None
    await schema.call("RENAME", record, aside)

    async def peek_and_write(*arguments: Any, **named: Any) -> Sequence[Peeked]:
        seen = await peek(*arguments, **named)
        await schema.call("RENAME", aside, record)
        return seen

    monkeypatch.setattr(queues, "peek", peek_and_write)

    assert 0 == await schema.harness.backend.queues.drop([task.receipt])
    assert 1 == len(await take(schema.harness))


async def test_a_connection_that_brought_a_refusal_is_not_used_again(schema: Schema) -> None:
    first = await schema.call("CLIENT", "ID")
    assert first == await schema.call("CLIENT", "ID")
    await schema.call("SET", f"{schema.prefix}:op:text", "1", "PX", 60_000)

    with pytest.raises(Rejected):
        await schema.call("HGET", f"{schema.prefix}:op:text", "field")

    assert first != await schema.call("CLIENT", "ID")


async def test_counts_are_read_anew_where_ids_were_exchanged_meanwhile(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await submit(schema.harness, delay=seconds(60))
    inner, turns = Link.run, iter([True])

    async def exchanging(link: Link, commands: Sequence[Sequence[str]], *, keys: Sequence[str]) -> Sequence[Reply]:
        if commands[0][0] == "HGETALL" and next(turns, False):
            await promote(schema.harness, task)
            await submit(schema.harness, delay=seconds(60))
        return await inner(link, commands, keys=keys)

    monkeypatch.setattr(Link, "run", exchanging)

    assert [("1", 1)] == await counts(schema)


async def test_a_walk_that_was_overtaken_tells_no_counts(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    await submit(schema.harness, delay=seconds(60))
    await schema.call("HSET", schema.keys.queues, QUEUE, "7")
    monkeypatch.setattr(tally, "EXACT", 0)
    walked = "_walked"
    inner = getattr(tally, walked)

    async def overtaken(link: Link) -> Any:
        found = await inner(link)
        await submit(schema.harness, delay=seconds(60))
        return found

    monkeypatch.setattr(tally, walked, overtaken)

    assert [] == await counts(schema)
    assert [COUNTS] == [one.what for one in await denied(schema)]


async def test_a_walk_that_was_overtaken_by_as_many_as_left_is_made_again(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await submit(schema.harness, delay=seconds(60))
    await schema.call("HSET", schema.keys.queues, QUEUE, "7")
    monkeypatch.setattr(tally, "EXACT", 0)
    walked = "_walked"
    inner, turns = getattr(tally, walked), iter([True])

    async def overtaken(link: Link) -> Any:
        found = await inner(link)
        if next(turns, False):
            await promote(schema.harness, task)
            await submit(schema.harness, queue=QueueName("mail"), delay=seconds(60))
        return found

    monkeypatch.setattr(tally, walked, overtaken)

    assert [("6", 0)] == await counts(schema)


async def test_more_than_can_be_counted_is_not_counted(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    await submit(schema.harness, delay=seconds(60))
    monkeypatch.setattr(tally, "EXACT", 0)
    monkeypatch.setattr(tally, "MOST", 0)

    assert [(COUNTS, "more than 0 tasks are scheduled")] == [(one.what, one.why) for one in await denied(schema)]
