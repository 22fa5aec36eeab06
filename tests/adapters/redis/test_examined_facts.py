"""What an examination reads on a server: bounded pieces, and facts that are right at the first and the second look."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from dtq.adapters.redis import task_pages, trips
from dtq.adapters.redis.client import Client, Rejected, Reply
from dtq.adapters.redis.examination import STEP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.looks import consumer_fact
from dtq.adapters.redis.task_looks import may_be_trimmed
from dtq.domain.facts import ConsumerFact, Denied, EntryFact, Fact, NameFact, Record, Role, TaskFact
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId
from tests.adapters.redis.schema import Schema
from tests.contract.examining import told
from tests.contract.steps import bring_to, claim, run, seconds, submit
from tests.factories import QUEUE, WORKER, a_heartbeat, a_task

LIMIT = 10
FULL: Reply = ["length", 1, "entries-added", LIMIT + 1]


async def again(schema: Schema, *facts: Fact) -> list[Fact | None]:
    return [*await schema.harness.backend.examiner.again(facts)]


async def test_one_script_looks_at_a_bounded_number_of_things(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [TaskFact(task_id=task.task_id, record=Record(task)) for task in [await submit(schema.harness)] * 40]
    inner, sizes = Link.run, list[int]()

    async def noting(link: Link, commands: Sequence[Sequence[str]], *, keys: Sequence[str]) -> Sequence[Reply]:
        sizes.append(len(commands))
        return await inner(link, commands, keys=keys)

    monkeypatch.setattr(Link, "run", noting)

    assert None not in await again(schema, *facts)
    assert len(sizes) > 1
    assert max(sizes) <= STEP


async def test_one_pipeline_carries_a_bounded_number_of_commands(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(10):
        await submit(schema.harness)
    monkeypatch.setattr(trips, "TRIP", 5)
    inner, sizes = Client.pipeline, list[int]()

    async def noting(client: Client, commands: Sequence[Sequence[str]]) -> Any:
        sizes.append(len(commands))
        return await inner(client, commands)

    monkeypatch.setattr(Client, "pipeline", noting)

    await told(schema.harness)

    assert max(sizes) <= 5


async def test_no_more_entries_are_kept_in_mind_than_there_is_room_for(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submit(schema.harness)
    assert not [one for one in await told(schema.harness) if isinstance(one, EntryFact)]

    monkeypatch.setattr(task_pages, "_REMEMBERED", 0)

    assert 1 == len([one for one in await told(schema.harness) if isinstance(one, EntryFact)])


async def test_what_stands_in_an_unreadable_stream_counts_as_there(schema: Schema) -> None:
    task = await submit(schema.harness, priority=4)
    await schema.harness.spoil(QUEUE, priority=4)

    (fact,) = [one for one in await told(schema.harness) if isinstance(one, TaskFact)]

    assert (task.task_id, True) == (fact.task_id, fact.entered)


async def test_it_is_told_where_nobody_can_say_which_letters_were_trimmed(schema: Schema) -> None:
    await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)
    await schema.call("SET", schema.keys.dead_letters, "text")

    assert "dead letters older than the oldest that is left" in [
        one.what for one in await told(schema.harness) if isinstance(one, Denied)
    ]


async def test_a_name_that_is_gone_is_none_when_it_is_read_again(schema: Schema) -> None:
    name = schema.keys.lock

    assert [None] == await again(schema, NameFact(name=name, role=Role.LOCK, is_eternal=True))


async def test_a_task_on_loan_has_its_place_when_it_is_read_again(schema: Schema) -> None:
    task = await submit(schema.harness, delay=seconds(60))
    await claim(schema.harness, task)

    (fact,) = await again(schema, TaskFact(task_id=task.task_id, record=Record(task)))

    assert isinstance(fact, TaskFact)
    assert fact.scheduled


async def test_a_worker_that_lives_and_is_not_listed_is_known_when_its_consumer_is_read_again(schema: Schema) -> None:
    await schema.harness.backend.workers.announce(a_heartbeat(), expires_in=seconds(60))
    await run(schema.harness, worker=WORKER)
    await schema.call("SREM", schema.keys.workers, WORKER)

    (fact,) = await again(schema, ConsumerFact(queue=QUEUE, worker=WORKER, owns=1, idle=timedelta(), is_known=False))

    assert isinstance(fact, ConsumerFact)
    assert fact.is_known


def test_a_consumer_owns_what_it_owns_anywhere_and_was_heard_of_where_it_read_last() -> None:
    streams = [{"name": WORKER, "pending": 1, "idle": 9_000}, {"name": WORKER, "pending": 2, "idle": 4_000}]

    fact = consumer_fact(QUEUE, WORKER, streams, is_known=True)

    assert (3, timedelta(seconds=4)) == (fact.owns, fact.idle)


@pytest.mark.parametrize(
    ("first", "state", "may_be"),
    [
        ([["7-0", []]], FULL, True),
        ([], FULL, True),
        ([["3-0", []]], FULL, False),
        ([["7-0", []]], ["length", 1, "entries-added", LIMIT], False),
        ([["7-0", []]], ["length", 1], True),
        ([], Rejected("ERR", "no such key"), False),
        ([], Rejected("NOPERM", "this user has no permissions"), True),
        ([["3-0", []]], Rejected("NOPERM", "this user has no permissions"), False),
    ],
)
def test_a_letter_may_be_trimmed_where_it_is_older_than_all_and_more_were_written_than_are_kept(
    first: Reply, state: Reply, *, may_be: bool
) -> None:
    task = a_task(status=TaskStatus.DEAD_LETTERED, dlq_entry_id=EntryId("5-0"))

    assert may_be is may_be_trimmed(task, first, state, limit=LIMIT)
