"""WorkQueue.fetch, of changes that are made first: one test for each sentence of its docstring."""

from collections.abc import Collection, Sequence

import pytest

from dtq.domain.change import Change
from dtq.domain.errors import BrokerOutOfMemory, OutcomeUnknown
from dtq.domain.lifecycle import requeue
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Receipt, Task, TaskId
from dtq.ports.answers import Already, Applied, Broken, CommitAnswer, Conflict, Refused
from dtq.ports.broker import Fetch
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, cancel, decide_finish, decide_start, now, run, stored, submit, take_one
from tests.factories import OPERATOR, QUEUE, WORKER, a_success, a_token, an_audit_entry, an_event

S = TaskStatus
HALF_A_MEGABYTE = 512 * 1024


async def fetch_after(harness: Harness, *changes: object, limit: int = 0, held: Collection[Receipt] = ()) -> Fetch:
    after = [change for change in changes if isinstance(change, Change)]
    assert len(changes) == len(after)
    broker = harness.backend.broker
    return await broker.fetch(QUEUE, worker=WORKER, limit=limit, reap_idle=None, held=held, after=after)


def kinds(answers: Sequence[CommitAnswer]) -> list[type[CommitAnswer]]:
    return [type(answer) for answer in answers]


def taken(fetched: Fetch) -> list[str]:
    return [one.fields["task_id"] for one in fetched.deliveries]


async def an_end(harness: Harness, task: Task) -> Change:
    change = decide_finish(harness, task, a_success())
    assert isinstance(change, Change)
    return change


async def test_the_changes_are_made_and_each_makes_room_for_one_entry(harness: Harness) -> None:
    ended = [await run(harness), await run(harness)]
    waiting = [await submit(harness) for _ in range(3)]

    fetched = await fetch_after(harness, *[await an_end(harness, task) for task in ended])

    assert [Applied, Applied] == kinds(fetched.answers)
    assert [S.SUCCEEDED, S.SUCCEEDED] == [(await stored(harness, task.task_id)).status for task in ended]
    assert [task.task_id for task in waiting[:2]] == taken(fetched)


async def test_the_limit_counts_besides_and_may_begin_below_zero(harness: Harness) -> None:
    first, second = await run(harness), await run(harness)
    waiting = [await submit(harness) for _ in range(3)]

    assert [] == taken(await fetch_after(harness, await an_end(harness, first), limit=-1))
    assert [task.task_id for task in waiting] == taken(
        await fetch_after(harness, await an_end(harness, second), limit=2)
    )


async def test_what_is_not_made_makes_no_room(harness: Harness) -> None:
    moved, known, waiting = await run(harness), await run(harness), await submit(harness)
    late, repeated = await an_end(harness, moved), await an_end(harness, known)
    await cancel(harness, moved)
    await fetch_after(harness, repeated, limit=-1)

    fetched = await fetch_after(harness, late, repeated)

    assert ([Conflict, Already], []) == (kinds(fetched.answers), taken(fetched))
    assert waiting.task_id in (await harness.census())[Place.READY]


async def test_where_the_limit_stays_below_zero_nothing_that_is_held_fits_either(harness: Harness) -> None:
    held = [(await take_one(harness, await submit(harness, priority=priority))).receipt for priority in (9, 5)]
    moved = await run(harness, priority=0)
    late = await an_end(harness, moved)
    await cancel(harness, moved)

    fetched = await fetch_after(harness, late, limit=-1, held=held)

    assert ([Conflict], []) == (kinds(fetched.answers), taken(fetched))
    assert {*held} < {*await harness.backend.broker.owned(QUEUE, worker=WORKER)}


async def test_a_change_that_is_refused_makes_no_room(harness: Harness) -> None:
    delivery = await take_one(harness, await submit(harness))
    start = decide_start(harness, delivery)
    await submit(harness)
    await harness.disown(TaskId(delivery.fields["task_id"]))

    fetched = await fetch_after(harness, start)

    assert ([Refused], []) == (kinds(fetched.answers), taken(fetched))


async def test_a_change_that_stops_half_way_keeps_nobody_from_fetching(harness: Harness) -> None:
    task, waiting = await run(harness), await submit(harness)
    await harness.stop_after(1)

    fetched = await fetch_after(harness, await an_end(harness, task), limit=1)

    assert ([Broken], [waiting.task_id]) == (kinds(fetched.answers), taken(fetched))


async def test_answers_come_from_a_paused_queue(harness: Harness) -> None:
    task = await run(harness)
    await submit(harness)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    fetched = await fetch_after(harness, await an_end(harness, task), limit=1)

    assert (True, [Applied], []) == (fetched.paused, kinds(fetched.answers), taken(fetched))


async def test_answers_come_though_a_priority_cannot_be_read(harness: Harness) -> None:
    task, waiting = await run(harness, priority=5), await submit(harness, priority=5)
    await harness.spoil(QUEUE, priority=4)

    fetched = await fetch_after(harness, await an_end(harness, task), limit=1)

    assert ([Applied], [waiting.task_id]) == (kinds(fetched.answers), taken(fetched))
    assert ["p4"] == [fault.partition(":")[0] for fault in fetched.faults]


async def test_a_lost_reply_loses_neither_the_changes_nor_the_entries(harness: Harness) -> None:
    task, waiting = await run(harness), await submit(harness)
    change = await an_end(harness, task)
    await harness.lose_reply()

    with pytest.raises(OutcomeUnknown):
        await fetch_after(harness, change)

    assert [waiting.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))
    assert [Already] == kinds((await fetch_after(harness, change)).answers)


async def test_changes_that_no_one_request_holds_are_all_made_before_the_fetch(harness: Harness) -> None:
    tasks = [await run(harness) for _ in range(4)]
    waiting = [await submit(harness) for _ in range(5)]
    ends = [decide_finish(harness, task, a_success(result='"' + "x" * HALF_A_MEGABYTE + '"')) for task in tasks]

    await cancel(harness, tasks[0])

    fetched = await fetch_after(harness, *ends)

    assert [Conflict, *[Applied] * 3] == kinds(fetched.answers)
    assert [task.task_id for task in waiting[:3]] == taken(fetched)


async def test_a_new_life_among_them_needs_free_memory(harness: Harness) -> None:
    dead, waiting = await bring_to(harness, S.DEAD_LETTERED), await submit(harness)
    change = requeue(dead, now=now(harness), token=a_token(), by=OPERATOR)
    await harness.fill_memory()

    with pytest.raises(BrokerOutOfMemory):
        await fetch_after(harness, change, limit=1)

    await harness.free_memory()
    fetched = await fetch_after(harness, change, limit=1)
    assert [Applied] == kinds(fetched.answers)
    assert [waiting.task_id, dead.task_id] == taken(fetched)
