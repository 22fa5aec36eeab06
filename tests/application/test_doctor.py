"""The doctor's rounds: looked at twice, bounded, one at a time, audited; and what is left, with its reason."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest

from dtq.application import orientation, reports
from dtq.application.reports import Report
from dtq.application.rounds import SECOND_LOOK
from dtq.application.treatment import MOVED
from dtq.domain.audit import audited
from dtq.domain.errors import BrokerRefused, BrokerUnavailable
from dtq.domain.facts import CountFact, Denied, Fact, KeyFact, NameFact, Role
from dtq.domain.findings import Kind
from dtq.domain.idempotency import IdempotencyRecord, RecordState
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from dtq.ports.environment import ServerFacts
from tests.application.clinic import Clinic, over
from tests.contract.examining import the_fact
from tests.contract.steps import bring_to, key_record, stored, submit
from tests.factories import OPERATOR, QUEUE, a_heartbeat, an_audit_entry, an_event

LONG = timedelta(seconds=60)


@pytest.fixture
def clinic() -> Clinic:
    return Clinic()


def counts(report: Report) -> dict[Kind, int]:
    return {group.kind: group.count for group in report.groups}


async def test_nothing_is_found_where_all_is_well(clinic: Clinic) -> None:
    for status in TaskStatus:
        await bring_to(clinic.harness, status)

    report = await clinic.examined()

    assert (True, {}) == (report.is_healthy, counts(report))
    assert report.examined >= len(TaskStatus)


async def test_an_examination_changes_nothing(clinic: Clinic) -> None:
    task = await clinic.homeless()

    report = await clinic.examined()

    assert (False, {Kind.HOMELESS: 1}) == (report.is_healthy, counts(report))
    assert task == await stored(clinic.harness, task.task_id)
    assert [] == await clinic.actions()


async def test_what_rights_itself_between_two_looks_is_not_found(clinic: Clinic) -> None:
    task = await clinic.homeless()
    running = asyncio.ensure_future(clinic.doctor.examine())
    await clinic.clock.advance(SECOND_LOOK / 2)

    await clinic.harness.evict(task.task_id)

    await clinic.clock.advance(LONG)
    assert {} == counts(running.result())


async def test_a_repair_is_made_audited_and_gone_in_the_next_round(clinic: Clinic) -> None:
    task = await clinic.homeless()

    report = await clinic.repaired()

    assert (True, [(1, 0)]) == (report.is_healthy, [(one.repaired, one.left) for one in report.groups])
    assert ["doctor.repair", "doctor.task_without_home"] == await clinic.actions()
    entry = (await clinic.backend.audit.recent(limit=1))[0]
    assert (OPERATOR.name, 1) == (entry.actor, entry.count)
    assert {} == counts(await clinic.examined())
    assert TaskStatus.QUEUED is (await stored(clinic.harness, task.task_id)).status


async def test_a_repair_that_finds_nothing_says_so_in_the_trail(clinic: Clinic) -> None:
    await clinic.repaired()

    assert [("doctor.repair", 0)] == [(one.action, one.count) for one in await clinic.backend.audit.recent(limit=9)]


async def test_what_needs_a_person_is_left_with_what_to_do(clinic: Clinic) -> None:
    task = await submit(clinic.harness)
    await clinic.harness.garble(task.task_id)

    (group,) = (await clinic.repaired()).groups

    assert (Kind.UNREADABLE, 0, 1) == (group.kind, group.repaired, group.left)
    assert "correct the field" in group.reasons[0]


async def test_what_one_repair_set_right_needs_no_other(clinic: Clinic) -> None:
    task = await submit(clinic.harness, idempotency_key="k")
    for _ in range(2):
        await clinic.harness.duplicate(task.task_id)
    await clinic.harness.evict(task.task_id)

    report = await clinic.repaired()

    # the first entry to be stored again is the task's own, which makes the others surplus
    assert {Kind.ORPHAN_ENTRY: 3, Kind.SURPLUS_ENTRY: 2, Kind.KEY: 1} == counts(report)
    assert report.is_healthy
    assert {} == counts(await clinic.examined())


async def test_a_key_that_names_another_task_guards_its_own_again_after_one_repair(clinic: Clinic) -> None:
    task, other = await submit(clinic.harness, idempotency_key="k"), await submit(clinic.harness)
    record = IdempotencyRecord(task_id=other.task_id, state=RecordState.PROCESSING, updated_at=clinic.clock.now())
    fact = await the_fact(clinic.harness, KeyFact, key="k")
    await clinic.backend.examiner.rewrite_key(QUEUE, key="k", text=fact.text, record=record, lifetime=LONG)

    report = await clinic.repaired()

    assert ({Kind.KEY: 2}, True) == (counts(report), report.is_healthy)
    guarding = await key_record(clinic.harness, "k")
    assert guarding is not None
    assert task.task_id == guarding.task_id
    assert {} == counts(await clinic.examined())


async def test_more_than_can_be_told_is_at_least_so_many(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST", 5)
    monkeypatch.setattr(reports, "EXAMPLES", 2)
    for _ in range(7):
        await clinic.homeless()

    (group,) = (await clinic.examined()).groups
    assert (5, False, 2) == (group.count, group.is_exact, len(group.examples))
    (group,) = (report := await clinic.repaired()).groups
    assert (5, 2, False) == (group.repaired, len(group.examples), report.is_healthy)
    (group,) = (await clinic.repaired()).groups
    assert (2, True) == (group.count, group.is_exact)


async def test_who_asks_meanwhile_gets_the_same_report(clinic: Clinic) -> None:
    first, second = asyncio.ensure_future(clinic.doctor.examine()), asyncio.ensure_future(clinic.doctor.examine())
    await clinic.clock.advance(LONG)
    third = await clinic.examined()

    assert first.result() is second.result()
    assert third is not first.result()


async def test_a_caller_who_leaves_ends_no_other_callers_round(clinic: Clinic) -> None:
    await clinic.homeless()
    first, second = asyncio.ensure_future(clinic.doctor.examine()), asyncio.ensure_future(clinic.doctor.examine())
    await clinic.clock.advance(SECOND_LOOK / 2)
    first.cancel()
    await clinic.clock.advance(LONG)

    assert {Kind.HOMELESS: 1} == counts(second.result())


async def test_a_purge_explains_why_dead_letters_are_gone(clinic: Clinic) -> None:
    await bring_to(clinic.harness, TaskStatus.DEAD_LETTERED)
    await clinic.backend.dead_letters.purge(audit=audited("dlq.purge", by=OPERATOR, at=clinic.clock.now()))
    assert {} == counts(await clinic.examined())

    await clinic.clock.advance(LONG)
    task = await bring_to(clinic.harness, TaskStatus.DEAD_LETTERED)
    await clinic.harness.orphan(task.task_id)

    assert {Kind.LETTER_MISSING: 1} == counts(await clinic.repaired())
    assert await clinic.backend.dead_letters.get(task.task_id)


@pytest.mark.parametrize("is_repair", [False, True])
async def test_a_purge_while_a_round_lasts_explains_as_well(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, *, is_repair: bool
) -> None:
    await bring_to(clinic.harness, TaskStatus.DEAD_LETTERED)
    read = clinic.backend.examiner.read

    async def purged_before(*, limit: int) -> AsyncIterator[Sequence[Fact | Denied]]:
        await clinic.backend.dead_letters.purge(audit=audited("dlq.purge", by=OPERATOR, at=clinic.clock.now()))
        async for page in read(limit=limit):
            yield page

    monkeypatch.setattr(clinic.backend.examiner, "read", purged_before)

    report = await (clinic.repaired() if is_repair else clinic.examined())

    assert ({}, 0) == (counts(report), await clinic.backend.dead_letters.count())


async def test_a_trail_that_is_too_short_to_tell_explains_as_well(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await bring_to(clinic.harness, TaskStatus.DEAD_LETTERED)
    await clinic.harness.orphan(task.task_id)
    monkeypatch.setattr(orientation, "_TRAIL", 1)
    assert {Kind.LETTER_MISSING: 1} == counts(await clinic.examined())

    await clinic.trail.record(audited("queue.pause", by=OPERATOR, at=clinic.clock.now()))

    assert {} == counts(await clinic.examined())


async def test_a_consumer_of_nobody_is_suspected_first(clinic: Clinic) -> None:
    await clinic.backend.broker.fetch(QUEUE, worker="worker-0000dead", limit=1, reap_idle=None)
    assert [] == (await clinic.examined()).suspicions
    leader = a_heartbeat(started_at=clinic.clock.now())
    await clinic.backend.workers.announce(leader, expires_in=10 * LONG)

    report = await clinic.examined()
    assert (True, [(Kind.CONSUMER, 1)]) == (report.is_healthy, [(one.kind, one.count) for one in report.suspicions])

    await clinic.clock.advance(LONG + LONG)
    assert {Kind.CONSUMER: 1} == counts(await clinic.repaired())
    assert {} == counts(await clinic.examined())


async def test_who_left_entries_in_a_paused_queue_is_no_finding(clinic: Clinic) -> None:
    await clinic.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    task = await submit(clinic.harness)
    await clinic.backend.queues.resume(QUEUE, audit=an_audit_entry(), event=an_event())
    await clinic.backend.broker.fetch(QUEUE, worker="worker-0000dead", limit=1, reap_idle=None)
    await clinic.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    await clinic.clock.advance(LONG + LONG)

    report = await clinic.repaired()

    assert (True, {}, ()) == (report.is_healthy, counts(report), tuple(report.suspicions))
    assert task.version == (await stored(clinic.harness, task.task_id)).version


ETERNAL = NameFact(name="dtq:result:x", role=Role.RESULT, is_eternal=True)


async def test_what_has_changed_meanwhile_is_left() -> None:
    clinic = over([ETERNAL])

    (group,) = (await clinic.repaired()).groups

    assert (1, (MOVED,)) == (group.left, group.reasons)
    assert ["doctor.repair"] == await clinic.actions()


async def test_what_the_broker_refuses_is_left_with_its_words_and_not_audited() -> None:
    clinic = over([ETERNAL], error=BrokerRefused("not allowed"))

    (group,) = (await clinic.repaired()).groups

    assert (1, True) == (group.left, "not allowed" in group.reasons[0])
    assert ["doctor.repair"] == await clinic.actions()


async def test_an_outage_ends_a_repair_and_the_trail_says_how_far_it_was() -> None:
    clinic = over([ETERNAL], error=BrokerUnavailable("gone"))

    with pytest.raises(BrokerUnavailable):
        await clinic.repaired()

    assert ["doctor.repair"] == await clinic.actions()


async def test_what_could_not_be_read_is_told_and_makes_nobody_ill() -> None:
    report = await over([Denied("keys", "TYPE is denied")]).examined()

    assert (True, [Denied("keys", "TYPE is denied")]) == (report.is_healthy, list(report.denied))


async def test_counts_are_found_like_all_else() -> None:
    report = await over([CountFact(queue=QueueName("mail"), text="7", counted=1), ETERNAL]).examined()

    assert {Kind.ETERNAL: 1, Kind.COUNT: 1} == counts(report)


@pytest.mark.parametrize(("offset", "apart"), [(0.9, 0), (-0.9, 0), (1.1, 1), (-5.0, 1)])
async def test_a_server_is_examined_too(offset: float, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = Clinic()

    async def inspect() -> ServerFacts:
        return ServerFacts(
            description="Redis",
            uptime=LONG,
            host_offset=timedelta(seconds=offset),
            problems=("it may evict",),
            warnings=("no append-only file",),
        )

    monkeypatch.setattr(clinic.backend.server, "inspect", inspect)

    report = await clinic.examined()

    assert {Kind.SERVER: 1, **({Kind.CLOCKS: 1} if apart else {})} == counts(report)
    assert ("no append-only file",) == report.advice
    (group, *_) = (await clinic.repaired()).groups
    assert (1, "set it up") == (group.left, group.reasons[0][:9])
