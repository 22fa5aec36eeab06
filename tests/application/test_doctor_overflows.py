"""More that seems wrong at first than is looked at twice: what the second look passes over is told of."""

from collections.abc import Sequence

import pytest

from dtq.application import reports
from dtq.domain.facts import Denied, Fact, NameFact, Role
from tests.application.clinic import Scripted, over


async def test_what_nobody_looked_at_twice_is_told_of_where_the_rest_was_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST", 1)
    clinic = over([NameFact(name=f"dtq:result:{number}", role=Role.RESULT, is_eternal=True) for number in range(2)])

    async def again(examiner: Scripted, facts: Sequence[Fact]) -> Sequence[Fact | None]:
        del examiner
        return [None for _ in facts]

    monkeypatch.setattr(Scripted, "again", again)

    report = await clinic.examined()

    told = Denied("what seemed to be key_without_lifetime", "more than 1 things seemed so at first: look again")
    assert ([], [told]) == (report.groups, [*report.denied])
