"""What an examination cannot go by is told, and nothing is found or repaired that would need it."""

from datetime import timedelta

import pytest

from dtq.application.treatment import UNRECORDED, UNSAFE
from dtq.domain.errors import BrokerRefused, RecordUnreadable
from dtq.domain.facts import SEE_TYPES, Denied, NameFact, Role
from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from tests.application.clinic import Clinic, over
from tests.contract.steps import bring_to, run, stored, submit

LONG = timedelta(seconds=60)


@pytest.fixture
def clinic() -> Clinic:
    return Clinic()


def deny(clinic: Clinic, port: str, method: str, error: BrokerRefused, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(getattr(clinic.backend, port), method, refuse)


@pytest.mark.parametrize(
    ("error", "why"),
    [(BrokerRefused("XREVRANGE is denied"), "XREVRANGE is denied"), (RecordUnreadable("a text"), SEE_TYPES)],
)
async def test_without_the_trail_no_letter_is_missing_and_nothing_repaired(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, error: BrokerRefused, why: str
) -> None:
    dead, task = await bring_to(clinic.harness, TaskStatus.DEAD_LETTERED), await clinic.homeless()
    await clinic.harness.orphan(dead.task_id)
    await clinic.harness.garble((await submit(clinic.harness)).task_id)
    deny(clinic, "audit", "recent", error, monkeypatch)

    report = await clinic.repaired()

    groups = {group.kind: (group.repaired, group.left) for group in report.groups}
    assert {Kind.UNREADABLE: (0, 1), Kind.HOMELESS: (0, 1)} == groups
    reasons = [reason for group in report.groups for reason in group.reasons]
    assert (True, UNRECORDED) == ("correct" in reasons[0], reasons[1])
    assert [Denied("dead letters that are missing", why)] == list(report.denied)
    assert task == await stored(clinic.harness, task.task_id)


async def test_without_the_list_of_workers_nothing_is_abandoned(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(clinic.harness)
    await clinic.clock.advance(LONG + LONG)
    assert Kind.ABANDONED in [group.kind for group in (await clinic.examined()).groups]
    inner, asked = clinic.backend.workers.known, list[None]()

    async def known() -> object:
        asked.append(None)
        if len(asked) == 1:
            raise RecordUnreadable("a text")
        return await inner()

    monkeypatch.setattr(clinic.backend.workers, "known", known)

    report = await clinic.examined()

    assert Kind.ABANDONED not in [group.kind for group in report.groups]
    assert [Denied("tasks that are abandoned", SEE_TYPES)] == list(report.denied)


async def test_what_no_repair_of_its_kind_touches_is_left_to_a_person() -> None:
    theirs = NameFact(name="dtq:op:x", role=Role.HANDLERS, is_eternal=True)

    (group,) = (await over([theirs]).repaired()).groups

    assert (1, (UNSAFE,), [UNSAFE]) == (group.left, group.reasons, [*group.outcomes])
