"""TaskStore.create: one test for each sentence of its docstring."""

import asyncio
from datetime import timedelta

import pytest

from dtq.domain.admission import BrokerLimits
from dtq.domain.errors import BrokerOutOfMemory
from dtq.domain.idempotency import RecordState
from dtq.domain.lifecycle import submit as submission
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import QueueName, TaskId
from dtq.ports.answers import Admission, Already, Applied, Conflict, Full, KeyTaken
from dtq.ports.backend import BackendOptions
from tests.contract.harness import Harness, OpenHarness
from tests.contract.steps import (
    LIMITS,
    bare,
    bring_to,
    create,
    key_record,
    now,
    seconds,
    stored,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, a_spec, a_task_id, a_token, an_admission

OTHER = QueueName("other")


async def test_a_task_to_run_at_once_gets_an_entry(harness: Harness) -> None:
    task = await submit(harness)

    assert TaskStatus.QUEUED is task.status
    assert {task.task_id} == (await harness.census())[Place.READY]
    assert [task.receipt] == [one.receipt for one in await take(harness)]


async def test_a_delayed_task_goes_to_the_schedule(harness: Harness) -> None:
    task = await submit(harness, delay=seconds(60))

    assert (TaskStatus.PENDING, None) == (task.status, task.entry_id)
    assert {task.task_id} == (await harness.census())[Place.SCHEDULE]
    assert task.available_at == await harness.backend.broker.next_due()


async def test_admissions_are_created_in_order(harness: Harness) -> None:
    admissions = [an_admission(now=now(harness)) for _ in range(5)]

    await harness.backend.broker.create(admissions, limits=LIMITS)

    assert [one.change.after.task_id for one in admissions] == [one.fields["task_id"] for one in await take(harness)]


async def test_what_is_not_awaited_is_not_created(harness: Harness) -> None:
    admission = an_admission(now=now(harness))

    harness.backend.broker.create([admission], limits=LIMITS).close()

    assert await harness.backend.broker.load(admission.change.after.task_id) is None
    assert isinstance(await create(harness, admission), Applied)


async def test_each_admission_is_answered_for_itself(harness: Harness) -> None:
    first, second = [an_admission(now=now(harness), idempotency_key="k") for _ in range(2)]
    third = an_admission(now=now(harness))

    answers = await harness.backend.broker.create([first, second, third], limits=LIMITS)

    assert [Applied, KeyTaken, Applied] == [type(answer) for answer in answers]


async def test_a_known_token_is_already(harness: Harness) -> None:
    admission = an_admission(now=now(harness))
    await create(harness, admission)

    task = await stored(harness, admission.change.after.task_id)
    assert Already(bare(task)) == await create(harness, admission)


async def test_a_task_id_that_is_taken_is_a_conflict(harness: Harness) -> None:
    task = await submit(harness)
    change = submission(a_spec(), task_id=task.task_id, now=now(harness), token=a_token())

    assert Conflict(bare(task)) == await create(harness, Admission(change=change))


async def test_the_own_id_is_looked_at_before_the_record_and_the_limits(harness: Harness) -> None:
    admission = an_admission(now=now(harness), idempotency_key="k")
    await create(harness, admission)

    answer = await create(harness, admission, limits=BrokerLimits(queue_depth=0))

    assert isinstance(answer, Already)


async def test_a_record_is_looked_at_before_the_limits(harness: Harness) -> None:
    await submit(harness, idempotency_key="k")

    answer = await create(harness, an_admission(idempotency_key="k"), limits=BrokerLimits(queue_depth=0))

    assert isinstance(answer, KeyTaken)


async def test_a_key_whose_record_cannot_be_read_is_taken_without_one_and_can_be_taken_over(harness: Harness) -> None:
    await harness.garble_key(QUEUE, key="k")

    taken = await create(harness, an_admission(now=now(harness), idempotency_key="k"))

    assert isinstance(taken, KeyTaken)
    assert taken.record is None
    replacement = an_admission(now=now(harness), idempotency_key="k", replaces=taken.text)
    assert isinstance(await create(harness, replacement), Applied)
    record = await key_record(harness, "k")
    assert record is not None
    assert replacement.change.after.task_id == record.task_id


async def test_a_taken_key_answers_with_its_record(harness: Harness) -> None:
    task = await submit(harness, idempotency_key="k")

    answer = await create(harness, an_admission(now=now(harness), idempotency_key="k"))

    assert isinstance(answer, KeyTaken)
    assert answer.record is not None
    assert (task.task_id, RecordState.PROCESSING) == (answer.record.task_id, answer.record.state)
    assert answer.text.startswith(f'{{"task_id":"{task.task_id}"')


async def test_a_key_belongs_to_its_queue(harness: Harness) -> None:
    await submit(harness, idempotency_key="k", queue=QUEUE)

    assert isinstance(await create(harness, an_admission(idempotency_key="k", queue=OTHER)), Applied)


async def test_a_record_is_taken_over_by_its_text(harness: Harness) -> None:
    lost = await submit(harness, idempotency_key="k")
    await harness.evict(lost.task_id)
    taken = await create(harness, an_admission(idempotency_key="k"))
    assert isinstance(taken, KeyTaken)

    admission = an_admission(now=now(harness), idempotency_key="k", replaces=taken.text)
    answer = await create(harness, admission)

    record = await key_record(harness, "k")
    assert isinstance(answer, Applied)
    assert record is not None
    assert (answer.task.task_id, RecordState.PROCESSING) == (record.task_id, record.state)


async def test_of_two_takeovers_one_wins(harness: Harness) -> None:
    lost = await submit(harness, idempotency_key="k")
    await harness.evict(lost.task_id)
    taken = await create(harness, an_admission(idempotency_key="k"))
    assert isinstance(taken, KeyTaken)
    await harness.advance(seconds(1))

    both = [an_admission(now=now(harness), idempotency_key="k", replaces=taken.text) for _ in range(2)]
    answers = await harness.backend.broker.create(both, limits=LIMITS)

    assert [Applied, KeyTaken] == [type(answer) for answer in answers]


async def test_a_record_is_made_with_its_task_and_outlives_the_delay(harness: Harness) -> None:
    lifetime, delay = harness.options.retention.idempotency, timedelta(days=3)
    await submit(harness, idempotency_key="k", delay=delay)

    await harness.advance(delay + lifetime - seconds(1))
    assert await key_record(harness, "k") is not None

    await harness.advance(seconds(2))
    assert await key_record(harness, "k") is None


async def test_a_full_queue_refuses(harness: Harness) -> None:
    await submit(harness, priority=9)
    await submit(harness, priority=0)

    answer = await create(harness, an_admission(), limits=BrokerLimits(queue_depth=2))

    assert Full(reason="queue_full", value=2, limit=2) == answer


async def test_depth_counts_what_is_held(harness: Harness) -> None:
    await bring_to(harness, TaskStatus.RUNNING)

    answer = await create(harness, an_admission(), limits=BrokerLimits(queue_depth=1))

    assert Full(reason="queue_full", value=1, limit=1) == answer


async def test_depth_is_counted_exactly_within_one_batch(harness: Harness) -> None:
    admissions = [an_admission(now=now(harness), priority=number % 10) for number in range(30)]

    answers = await harness.backend.broker.create(admissions, limits=BrokerLimits(queue_depth=20))

    assert [Applied] * 20 + [Full] * 10 == [type(answer) for answer in answers]


async def test_depth_is_counted_exactly_between_clients(harness: Harness) -> None:
    limits = BrokerLimits(queue_depth=20)
    admissions = [an_admission(now=now(harness)) for _ in range(30)]

    answers = await asyncio.gather(*(create(harness, one, limits=limits) for one in admissions))

    assert 20 == sum(isinstance(answer, Applied) for answer in answers)
    assert 20 == (await harness.backend.queues.stats(QUEUE)).depth


async def test_another_queue_is_not_full(harness: Harness) -> None:
    await submit(harness, queue=OTHER)

    assert isinstance(await create(harness, an_admission(), limits=BrokerLimits(queue_depth=1)), Applied)


async def test_a_full_schedule_refuses_what_is_delayed(harness: Harness) -> None:
    await submit(harness, delay=seconds(9), queue=OTHER)
    limits = BrokerLimits(scheduled=1)

    assert Full(reason="schedule_full", value=1, limit=1) == await create(
        harness, an_admission(delay=seconds(9)), limits=limits
    )
    assert isinstance(await create(harness, an_admission(), limits=limits), Applied)


async def test_too_many_queues_refuse_a_new_name(harness: Harness) -> None:
    await submit(harness, queue=OTHER)

    answer = await create(harness, an_admission(), limits=BrokerLimits(queues=1))

    assert Full(reason="too_many_queues", value=1, limit=1) == answer


async def test_a_known_queue_always_has_its_name(harness: Harness) -> None:
    await submit(harness, queue=OTHER)

    assert isinstance(await create(harness, an_admission(queue=OTHER), limits=BrokerLimits(queues=1)), Applied)


@pytest.mark.parametrize("delay", [0, 60])
@pytest.mark.parametrize(
    "limits", [BrokerLimits(queue_depth=0), BrokerLimits(scheduled=0, queues=0)], ids=["depth", "names"]
)
async def test_what_is_refused_writes_nothing(harness: Harness, delay: int, limits: BrokerLimits) -> None:
    admission = an_admission(now=now(harness), delay=seconds(delay), idempotency_key="k")

    answer = await create(harness, admission, limits=limits)

    assert isinstance(answer, Full)
    assert await harness.backend.broker.load(admission.change.after.task_id) is None
    assert await key_record(harness, "k") is None
    assert [] == list(await harness.backend.queues.names())
    assert [] == list((await harness.backend.broker.recent(queue=None, status=None, limit=9)).tasks)
    assert not any((await harness.census()).values())


async def test_a_taken_key_writes_nothing(harness: Harness) -> None:
    task = await submit(harness, idempotency_key="k", queue=OTHER)

    await create(harness, an_admission(now=now(harness), idempotency_key="k", queue=OTHER))

    assert {task.task_id} == (await harness.census())[Place.READY]
    assert [bare(task)] == list((await harness.backend.broker.recent(queue=None, status=None, limit=9)).tasks)


async def test_full_memory_refuses(harness: Harness) -> None:
    admission = an_admission(now=now(harness), idempotency_key="k")
    await harness.fill_memory()

    with pytest.raises(BrokerOutOfMemory):
        await create(harness, admission)

    await harness.free_memory()
    assert await key_record(harness, "k") is None
    assert await harness.backend.broker.load(admission.change.after.task_id) is None
    assert isinstance(await create(harness, admission), Applied)


async def test_an_id_that_was_never_used_is_unknown(harness: Harness) -> None:
    await submit(harness)

    assert await harness.backend.broker.load(TaskId(a_task_id())) is None


async def test_brokers_know_nothing_of_each_other(harness: Harness, open_harness: OpenHarness) -> None:
    task = await submit(harness, idempotency_key="k")

    async with open_harness(options=BackendOptions()) as other:
        assert await other.backend.broker.load(task.task_id) is None
        assert await key_record(other, "k") is None
        assert [] == list(await take(other, worker=WORKER))
