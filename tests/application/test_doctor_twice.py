"""What is wrong in two ways is repaired in both by one run."""

from datetime import timedelta

from dtq.domain.facts import KeyFact
from dtq.domain.findings import Kind
from tests.application.clinic import Clinic
from tests.contract.examining import the_fact
from tests.contract.steps import key_record
from tests.factories import QUEUE


async def test_a_task_without_a_home_whose_key_is_gone_as_well_has_both_again() -> None:
    clinic = Clinic()
    task = await clinic.homeless(idempotency_key="k")
    stored = await the_fact(clinic.harness, KeyFact, key="k")
    await clinic.backend.examiner.rewrite_key(QUEUE, key="k", text=stored.text, record=None, lifetime=timedelta(days=1))

    report = await clinic.repaired()

    assert {Kind.HOMELESS: (1, 0), Kind.KEY: (1, 0)} == {one.kind: (one.repaired, one.left) for one in report.groups}
    guarding = await key_record(clinic.harness, "k")
    assert guarding is not None
    assert task.task_id == guarding.task_id
    assert [] == (await clinic.examined()).groups
