"""Examiner: records and entries that have lost their payload, which the next step of their tasks needs."""

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.entry import entry_fields
from dtq.domain.facts import TaskFact
from dtq.domain.findings import Kind
from dtq.domain.lifecycle import reenter
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Task, Version
from dtq.ports.answers import Applied
from tests.contract.examining import again, found, the_fact
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, now, take
from tests.factories import an_audit_entry

NEEDING = [TaskStatus.PENDING, TaskStatus.RETRYING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.DEAD_LETTERED]


@pytest.mark.parametrize("status", NEEDING)
@pytest.mark.parametrize("leaves", [None, ""])
async def test_a_task_without_its_payload_is_told_of(harness: Harness, status: TaskStatus, leaves: str | None) -> None:
    task = await bring_to(harness, status)
    assert (await the_fact(harness, TaskFact, task_id=task.task_id)).has_payload

    await harness.strip(task.task_id, leaves=leaves)

    (finding,) = await found(harness)
    assert (Kind.UNREADABLE, task.task_id, task.queue) == (finding.kind, finding.task_id, finding.queue)
    assert f"{status}, and it has no payload" in finding.detail
    fact = await the_fact(harness, TaskFact, task_id=task.task_id)
    (read,) = await again(harness, fact)
    assert isinstance(read, TaskFact)
    assert (False, False) == (fact.has_payload, read.has_payload)


@pytest.mark.parametrize("status", [TaskStatus.SUCCEEDED, TaskStatus.CANCELLED, TaskStatus.EXPIRED])
async def test_what_has_ended_needs_no_payload(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await harness.strip(task.task_id)

    assert [] == await found(harness)


async def emptied(harness: Harness, status: TaskStatus, **has: str) -> Task:
    """Have an entry without a payload in the place of a task's own, as a stranger may leave it."""
    task = await bring_to(harness, status)
    forged = await harness.forge(task.queue, priority=task.priority, fields=entry_fields(task) | has)
    after = replace(task, entry_id=forged.entry_id, version=Version("emptied"))
    (answer,) = await harness.backend.broker.commit([Change(before=task, after=after, at=now(harness))])
    assert isinstance(answer, Applied)
    return answer.task


@pytest.mark.parametrize("status", [TaskStatus.QUEUED, TaskStatus.RUNNING])
@pytest.mark.parametrize("has", [{}, {"payload": ""}])
async def test_an_entry_without_the_payload_of_its_record_is_told_of(
    harness: Harness, status: TaskStatus, has: dict[str, str]
) -> None:
    task = await emptied(harness, status, **has)

    assert (Kind.HOLLOW_ENTRY, task.task_id) in [(one.kind, one.task_id) for one in await found(harness)]
    fact = await the_fact(harness, TaskFact, task_id=task.task_id)
    (read,) = await again(harness, fact)
    assert isinstance(read, TaskFact)
    assert [(True, True)] * 2 == [(one.hollow, one.has_payload) for one in (fact, read)]


async def test_another_entry_has_the_payload_of_the_record(harness: Harness) -> None:
    task = await emptied(harness, TaskStatus.QUEUED)
    change = reenter(task, now=now(harness), token=Version("new"), audit=an_audit_entry())
    assert isinstance(change, Change)

    (answer,) = await harness.backend.broker.commit([change])

    assert isinstance(answer, Applied)
    assert {task.task_id} == (await harness.census())[Place.READY]
    (delivery,) = await take(harness)
    stored = await harness.backend.broker.load(task.task_id)
    assert stored is not None
    assert (answer.task.entry_id, stored.payload) == (delivery.receipt.entry_id, delivery.fields["payload"])
    assert [] == await found(harness)
