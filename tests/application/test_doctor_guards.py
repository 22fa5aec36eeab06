"""What keeps the doctor from harm and from false alarm: bounds, ages, rests between pages, one repair at a time."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.adapters.system import UuidIds
from dtq.application import doctor, reports, rounds
from dtq.application.reaping import HANDED_BACK
from dtq.application.reports import MOST_DENIED, Report
from dtq.application.rounds import REST, SECOND_LOOK
from dtq.application.treatment import MOVED, UNRECORDED, Treatment
from dtq.domain.audit import INTERRUPTED, Actor, AuditEntry, audited
from dtq.domain.errors import OF_ONE_REQUEST, BrokerRefused, StepStopped
from dtq.domain.examination import CONSUMER_AGE
from dtq.domain.facts import ConsumerFact, Denied, Fact, NameFact, Record, Role, TaskFact
from dtq.domain.findings import Finding, Kind
from dtq.domain.retention import Retention
from dtq.domain.status import TaskStatus
from tests.application.clinic import Clinic, Scripted, over
from tests.contract.steps import PEER, bring_to, run, submit, take
from tests.factories import OPERATOR, QUEUE, WORKER, a_heartbeat

ETERNAL = NameFact(name="dtq:result:x", role=Role.RESULT, is_eternal=True)
VISIBILITY = timedelta(seconds=30)


@pytest.fixture
def clinic() -> Clinic:
    return Clinic()


def kinds(report: Report) -> dict[Kind, int]:
    return {group.kind: group.count for group in report.groups}


async def test_what_two_pages_bring_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST", 1)

    (group,) = (await over([ETERNAL, ETERNAL]).examined()).groups

    assert (1, True) == (group.count, group.is_exact)


async def test_of_what_is_denied_no_more_is_told_than_a_reader_can_use() -> None:
    report = await over([Denied(f"part {number}", "it is denied") for number in range(MOST_DENIED + 1)]).examined()

    assert MOST_DENIED == len(report.denied)


async def test_two_repairs_are_made_one_after_the_other(clinic: Clinic) -> None:
    await clinic.homeless()
    first, second = (asyncio.ensure_future(clinic.doctor.repair(by=OPERATOR)) for _ in range(2))

    while not second.done():
        await clinic.clock.advance(REST)

    assert [{Kind.HOMELESS: 1}, {}] == [kinds(first.result()), kinds(second.result())]


async def test_every_page_is_followed_by_a_rest(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "PAGE", 1)
    tasks = [await submit(clinic.harness) for _ in range(5)]
    inner, rests = clinic.clock.sleep, list[timedelta]()

    async def sleep(duration: timedelta) -> None:
        rests.append(duration)
        await inner(duration)

    monkeypatch.setattr(clinic.clock, "sleep", sleep)

    report = await clinic.examined()

    assert report.examined >= len(tasks)
    assert rests.count(REST) >= report.examined


async def test_a_silent_owner_is_given_twice_the_visibility_timeout(clinic: Clinic) -> None:
    await run(clinic.harness, worker=WORKER)
    await clinic.clock.advance(VISIBILITY * 1.5)
    assert Kind.ABANDONED not in kinds(await clinic.examined())

    await clinic.clock.advance(VISIBILITY)

    assert Kind.ABANDONED in kinds(await clinic.examined())


async def test_the_longest_visibility_timeout_of_all_workers_counts(clinic: Clinic) -> None:
    slow = a_heartbeat(worker_id=PEER, visibility_timeout=VISIBILITY * 10)
    await clinic.backend.workers.announce(slow, expires_in=VISIBILITY * 100)
    await run(clinic.harness, worker=WORKER)

    await clinic.clock.advance(VISIBILITY * 3)

    assert Kind.ABANDONED not in kinds(await clinic.examined())


async def test_what_a_lost_worker_left_days_ago_is_still_abandoned_and_what_it_handed_back_is_not(
    clinic: Clinic,
) -> None:
    left, given = await run(clinic.harness, worker=WORKER), await run(clinic.harness, worker=WORKER)
    assert given.receipt is not None
    await clinic.backend.broker.release([given.receipt], worker=WORKER)

    await clinic.clock.advance(timedelta(days=2))

    (group,) = [one for one in (await clinic.examined()).groups if one.kind is Kind.ABANDONED]
    assert [left.task_id] == [one.subject for one in group.examples]


async def test_what_a_silent_worker_owns_is_handed_back_for_the_next(clinic: Clinic) -> None:
    task = await run(clinic.harness, worker=WORKER)
    await clinic.clock.advance(VISIBILITY * 3)

    report = await clinic.repaired()

    assert 1 == next(group.repaired for group in report.groups if group.kind is Kind.ABANDONED)
    (delivery,) = await take(clinic.harness, worker=PEER, reap_idle=HANDED_BACK)
    assert task.receipt == delivery.receipt


async def test_a_purge_that_was_refused_explains_no_missing_letter(clinic: Clinic) -> None:
    task = await bring_to(clinic.harness, TaskStatus.DEAD_LETTERED)
    await clinic.harness.orphan(task.task_id)
    refused = audited("dlq.purge", by=OPERATOR, at=clinic.clock.now(), outcome="broker_unavailable")
    await clinic.trail.record(refused)

    assert {Kind.LETTER_MISSING: 1} == kinds(await clinic.examined())


async def test_letters_that_are_purged_before_their_turn_are_not_written_again(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await bring_to(clinic.harness, TaskStatus.DEAD_LETTERED)
    await clinic.harness.orphan(task.task_id)
    inner, looks = clinic.backend.examiner.again, list[int]()

    async def again(facts: Sequence[Fact]) -> Sequence[Fact | None]:
        looks.append(len(facts))
        if len(looks) == 2:
            purge = audited("dlq.purge", by=OPERATOR, at=clinic.clock.now())
            await clinic.backend.dead_letters.purge(audit=purge)
        seen: Sequence[Fact | None] = await inner(facts)
        return seen

    monkeypatch.setattr(clinic.backend.examiner, "again", again)

    assert {Kind.LETTER_MISSING: 1} == kinds(await clinic.repaired())
    assert 0 == await clinic.backend.dead_letters.count()


async def test_the_consumer_of_a_worker_that_has_come_back_is_left() -> None:
    clinic = over([ConsumerFact(queue=QUEUE, worker=WORKER, owns=0, idle=CONSUMER_AGE, is_known=False)])
    await clinic.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)
    back = a_heartbeat(started_at=clinic.clock.now() - CONSUMER_AGE)
    await clinic.backend.workers.announce(back, expires_in=VISIBILITY)

    (group,) = (await clinic.repaired()).groups

    assert (1, (MOVED,)) == (group.left, group.reasons)


async def test_nobody_is_told_of_a_repair_that_was_not_made(clinic: Clinic) -> None:
    told = list[Any]()

    class Watching:
        def committed(self, *changes: Any) -> None:
            told.extend(changes)

    treatment = Treatment(
        clinic.backend,
        ids=UuidIds(),
        trail=clinic.trail,
        observers=[Watching()],  # type: ignore[list-item]  # only steps are told here
        retention=Retention(),
    )
    task = await submit(clinic.harness)
    fact = TaskFact(task_id=task.task_id, record=Record(task))
    finding = Finding(kind=Kind.HOMELESS, subject=task.task_id, detail="", fact=fact, task_id=task.task_id)

    assert MOVED == await treatment.give(finding, by=Actor(name="operator", request_id="request-1"))
    assert [] == told


async def test_a_repair_that_is_interrupted_tells_how_much_it_has_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = over([replace(ETERNAL, name=f"dtq:result:{number}") for number in range(5)])
    begun: list[Finding] = []
    hangs = asyncio.Event()

    async def give(treatment: Treatment, finding: Finding, *, by: Actor) -> None:
        del treatment, by
        begun.append(finding)
        if len(begun) == 4:
            hangs.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(Treatment, "give", give)
    repair = asyncio.ensure_future(clinic.doctor.repair(by=OPERATOR))
    while not hangs.is_set():
        await clinic.clock.advance(SECOND_LOOK)

    repair.cancel()
    with pytest.raises(asyncio.CancelledError):
        await repair

    (entry,) = await clinic.backend.audit.recent(limit=9)
    assert ("doctor.repair", 3, INTERRUPTED) == (entry.action, entry.count, entry.outcome)


async def test_what_may_not_be_looked_at_again_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = over([ETERNAL])

    async def again(examiner: Scripted, facts: Sequence[Fact]) -> Sequence[Fact | None]:
        del examiner, facts
        raise BrokerRefused("not permitted")

    monkeypatch.setattr(Scripted, "again", again)
    report = await clinic.examined()

    assert ([], [Denied("what seemed wrong at first", "not permitted")]) == (report.groups, [*report.denied])


@pytest.mark.parametrize("refusal", OF_ONE_REQUEST)
async def test_what_cannot_be_audited_is_the_last_repair(
    monkeypatch: pytest.MonkeyPatch, refusal: type[BrokerRefused | StepStopped]
) -> None:
    clinic = over([replace(ETERNAL, name=f"dtq:result:{number}") for number in range(3)])
    limited: list[str] = []

    async def limit(examiner: Scripted, name: str, *, lifetime: timedelta) -> bool:
        del examiner, lifetime
        limited.append(name)
        return True

    async def record(entry: AuditEntry) -> None:
        raise refusal(f"no {entry.action}")

    monkeypatch.setattr(Scripted, "limit", limit)
    monkeypatch.setattr(clinic.backend.audit, "record", record)
    (group,) = (await clinic.repaired()).groups

    assert ["dtq:result:0"] == limited
    told = "it is repaired, but the audit trail refused: no doctor.key_without_lifetime"
    assert (0, 3, (told, UNRECORDED)) == (group.repaired, group.left, group.reasons)


async def test_what_cannot_be_audited_is_the_last_repair_of_any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = NameFact(name="dtq:lock:scheduler", role=Role.LOCK, is_eternal=True)
    clinic = over([lock, ETERNAL])
    repaired: list[str] = []

    async def mend(examiner: Scripted, name: str, *, lifetime: timedelta) -> bool:
        del examiner, lifetime
        repaired.append(name)
        return True

    async def record(entry: AuditEntry) -> None:
        raise BrokerRefused(f"no {entry.action}")

    monkeypatch.setattr(Scripted, "shorten", mend, raising=False)
    monkeypatch.setattr(Scripted, "limit", mend)
    monkeypatch.setattr(clinic.backend.audit, "record", record)
    groups = (await clinic.repaired()).groups

    assert [lock.name] == repaired
    assert [(Kind.LOCK, 0, 1), (Kind.ETERNAL, 0, 1)] == [(one.kind, one.repaired, one.left) for one in groups]
    assert (UNRECORDED,) == groups[1].reasons


async def test_a_repair_of_many_rests_in_between(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "BATCH", 2)
    for _ in range(5):
        await clinic.homeless()
    examined, inner, rests = clinic.doctor.examine, clinic.clock.sleep, list[timedelta]()

    async def sleep(duration: timedelta) -> None:
        rests.append(duration)
        await inner(duration)

    monkeypatch.setattr(clinic.clock, "sleep", sleep)
    looking = asyncio.ensure_future(examined())
    while not looking.done():
        await clinic.clock.advance(SECOND_LOOK)
    of_the_round = rests.count(REST)
    rests.clear()
    await clinic.repaired()

    # after each two, and after a look at the counts that the repairs may have made wrong
    assert of_the_round + 2 + 1 == rests.count(REST)
