"""dtq doctor: what people read of what is wrong, of what may become so, and of what became of each thing."""

from datetime import timedelta

import pytest

from dtq.application.doctor import Doctor
from dtq.application.reports import Group, Report, Suspicion
from dtq.domain.findings import Finding, Kind
from dtq.entrypoints.cli import main
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, document

__all__ = ["backend", "printed"]

CONSUMERS = Suspicion(Kind.CONSUMER, 12, timedelta(seconds=0.04), [f"mail w{number}" for number in range(12)])
ONE = Suspicion(Kind.CONSUMER, 1, timedelta(seconds=41.2), ["mail w"])
HALF = Group(
    kind=Kind.HOMELESS,
    count=2,
    is_exact=True,
    examples=[Finding(kind=Kind.HOMELESS, subject=name, detail="its entry is gone") for name in ("a", "b")],
    repaired=1,
    left=1,
    reasons=["it has changed"],
    outcomes=[None, "it has changed"],
)


def answer(monkeypatch: pytest.MonkeyPatch, *groups: Group, suspicions: tuple[Suspicion, ...] = ()) -> None:
    report = Report(examined=1, groups=groups, suspicions=suspicions, denied=(), advice=())

    async def reported(*_: object, **__: object) -> Report:
        return report

    monkeypatch.setattr(Doctor, "examine", reported)
    monkeypatch.setattr(Doctor, "repair", reported)


@pytest.mark.usefixtures("backend")
def test_what_is_not_yet_believed_is_named_and_never_wrong_at_once(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, suspicions=(CONSUMERS, ONE))

    assert 0 == main(["doctor"])

    many, one = printed()[0].splitlines()[1:]
    names = ", ".join(f"mail w{number}" for number in range(10))
    assert f"not yet believed: consumer_without_worker: {names}, and 2 more; wrong if the first of them " in many
    assert many.endswith("is still so in 1 s")
    assert "not yet believed: consumer_without_worker: mail w; wrong if it is still so in 42 s" == one


@pytest.mark.usefixtures("backend")
def test_what_became_of_each_is_said(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, HALF)

    assert 10 == main(["doctor", "--repair"])

    lines = printed()[0].splitlines()
    assert {"  a: its entry is gone (repaired)", "  b: its entry is gone (left)", "  left: it has changed"} <= {*lines}
    main(["doctor", "--repair", "--json"])
    (finding,) = document(printed)["findings"]
    assert [True, False] == [one["is_repaired"] for one in finding["examples"]]
