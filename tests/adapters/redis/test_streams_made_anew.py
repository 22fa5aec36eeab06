"""What docs/doctor.md has a person do about a stream that has given its last id."""

import re
from collections.abc import Callable
from datetime import timedelta
from operator import attrgetter
from pathlib import Path

import pytest

from dtq.adapters.redis.keys import Keyspace
from dtq.application import doctor as rounds
from dtq.domain.facts import LAST_ENTRY_ID
from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import bring_to
from tests.factories import QUEUE, an_audit_entry, an_event

DOCUMENT = Path(__file__).parents[3] / "docs/doctor.md"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SECOND_LOOK", timedelta())


@pytest.mark.parametrize("is_deleted", [True, False])
@pytest.mark.parametrize(
    "stream", [attrgetter("dead_letters"), attrgetter("audit")], ids=["the dead letters", "the audit trail"]
)
async def test_the_command_copies_all_but_what_has_the_last_id(
    schema: Schema, stream: Callable[[Keyspace], str], *, is_deleted: bool
) -> None:
    name = stream(schema.keys)
    await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)
    await schema.harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    before = await schema.call("XRANGE", name, "-", "+")
    await schema.call("XADD", name, LAST_ENTRY_ID, "task_id", "f" * 32)
    if is_deleted:
        await schema.call("XDEL", name, LAST_ENTRY_ID)
    assert [Kind.EXHAUSTED] == [one.kind for one in (await doctor_of(schema).examine()).groups]
    (script,) = re.findall(r'redis-cli EVAL "(.+)" 2 ', DOCUMENT.read_text())

    await schema.call("EVAL", script, 2, name, f"{name}-copy", f"({LAST_ENTRY_ID}")

    assert before
    assert (before, 0) == (
        await schema.call("XRANGE", name, "-", "+"),
        await schema.call("EXISTS", f"{name}-copy"),
    )
    assert (True, [], []) == told(await doctor_of(schema).examine())
