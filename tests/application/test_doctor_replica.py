"""A server that is no primary: the doctor says so, and does not take that for an outage."""

from datetime import timedelta

import pytest

from dtq.domain.facts import Denied
from dtq.domain.findings import Kind
from dtq.ports.environment import ServerFacts
from tests.application.clinic import Clinic


async def test_of_a_replica_nothing_is_told_but_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clinic = Clinic()
    await clinic.homeless()

    async def inspect() -> ServerFacts:
        return ServerFacts(description="Redis", uptime=timedelta(), problems=("it is a replica",), is_primary=False)

    monkeypatch.setattr(clinic.backend.server, "inspect", inspect)

    report = await clinic.examined()

    assert [(Kind.SERVER, "it is a replica")] == [(one.kind, one.examples[0].detail) for one in report.groups]
    assert [Denied("what is stored", "it can be looked at on the primary alone")] == [*report.denied]
