"""What docs/doctor.md has a person do about a stream that has given its last id."""

import re
from pathlib import Path

from dtq.domain.facts import LAST_ENTRY_ID
from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from tests.adapters.redis.schema import Schema, UseUp
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import bring_to
from tests.factories import QUEUE, an_audit_entry, an_event

DOCUMENT = Path(__file__).parents[3] / "docs/doctor.md"


async def test_the_command_copies_all_but_what_has_the_last_id(schema: Schema, kept: str, use_up: UseUp) -> None:
    await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)
    await schema.harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    before = await schema.call("XRANGE", kept, "-", "+")
    await use_up(kept)
    assert [Kind.EXHAUSTED] == [one.kind for one in (await doctor_of(schema).examine()).groups]
    (script,) = re.findall(r'redis-cli EVAL "(.+)" 2 ', DOCUMENT.read_text())

    await schema.call("EVAL", script, 2, kept, f"{kept}-copy", f"({LAST_ENTRY_ID}")

    assert before
    assert (before, 0) == (
        await schema.call("XRANGE", kept, "-", "+"),
        await schema.call("EXISTS", f"{kept}-copy"),
    )
    assert (True, [], []) == told(await doctor_of(schema).examine())
