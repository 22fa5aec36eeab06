"""Of submissions that fill several requests, only the first is written before it is sent."""

import json

import pytest

from dtq.adapters.redis.envelope import MAX_BYTES, Envelope
from dtq.adapters.redis.link import written as write
from dtq.adapters.redis.scripts import ScriptCall
from dtq.ports.answers import Applied
from tests.adapters.redis.schema import Schema
from tests.contract.steps import LIMITS, now
from tests.factories import an_admission


async def test_each_request_of_large_submissions_but_the_first_is_written_in_its_turn(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = json.dumps({"text": "x" * (MAX_BYTES // 4)})
    admissions = [an_admission(now=now(schema.harness), payload=payload) for _ in range(10)]
    written: list[int] = []

    def noted(envelope: Envelope) -> ScriptCall:
        written.append(len(envelope))
        return write(envelope)

    monkeypatch.setattr("dtq.adapters.redis.store.written", noted)
    creating = schema.harness.backend.broker.create(admissions, limits=LIMITS)
    assert [4] == written

    answers = await creating

    assert [4, 4, 2] == written
    assert [Applied] * 10 == [type(answer) for answer in answers]
