"""The doctor over HTTP, and that its page has the words of the code."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dtq.application import rounds
from dtq.domain.diagnoses import DIAGNOSES
from dtq.domain.task import TaskId
from tests.entrypoints.conftest import Api, MakeApi
from tests.tidy.tables import rows

PAGE = (Path(__file__).resolve().parents[2] / "docs/doctor.md").read_text()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SECOND_LOOK", timedelta())


async def scheduled_in_vain(api: Api) -> str:
    """Leave an id in the schedule whose task is gone."""
    task_id = await api.submit(delay_seconds=60)
    backend: Any = api.backend
    backend.broker._state.records.remove(TaskId(task_id))  # noqa: SLF001 - harm that no port does
    return task_id


async def test_get_tells_and_changes_nothing(make_api: MakeApi) -> None:
    api = await make_api()
    task_id = await scheduled_in_vain(api)

    for _ in range(2):
        body = (await api.client.get("/api/v1/doctor")).json()
        (finding,) = body["findings"]
        assert (False, "scheduled_in_vain", 1, False) == (
            body["healthy"],
            finding["kind"],
            finding["count"],
            finding["at_least"],
        )
        assert [task_id] == [one["subject"] for one in finding["examples"]]
        assert {"repaired", "left", "reasons"}.isdisjoint(finding)
    assert [] == (await api.client.get("/api/v1/audit")).json()["entries"]


async def test_post_repairs_and_says_what_became_of_it(make_api: MakeApi) -> None:
    api = await make_api()
    await scheduled_in_vain(api)

    body = (await api.client.post("/api/v1/doctor/repair")).json()

    assert (True, 1, 0, []) == (
        body["healthy"],
        *(body["findings"][0][name] for name in ("repaired", "left", "reasons")),
    )
    assert [] == (await api.client.get("/api/v1/doctor")).json()["findings"]
    trail = (await api.client.get("/api/v1/audit")).json()["entries"]
    assert ["doctor.repair", "doctor.scheduled_in_vain"] == [one["action"] for one in trail]


async def test_a_repair_needs_the_key_and_an_examination_does_not(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_API_KEY": "secret"})
    await scheduled_in_vain(api)

    assert 401 == (await api.client.post("/api/v1/doctor/repair")).status_code
    assert 1 == len((await api.client.get("/api/v1/doctor")).json()["findings"])
    answer = await api.client.post("/api/v1/doctor/repair", headers={"X-API-Key": "secret"})
    assert (200, True) == (answer.status_code, answer.json()["healthy"])


async def test_a_page_of_another_origin_repairs_nothing(make_api: MakeApi) -> None:
    api = await make_api()

    answer = await api.client.post("/api/v1/doctor/repair", headers={"Origin": "https://elsewhere.example"})

    assert 403 == answer.status_code


def test_the_page_has_every_finding_with_its_words() -> None:
    table = rows(PAGE, "## What it finds")

    assert {
        kind: [diagnosis.meaning, f"{'' if diagnosis.is_repaired else 'by hand: '}{diagnosis.remedy}"]
        for kind, diagnosis in DIAGNOSES.items()
    } == {kind: [*cells] for kind, cells in table.items()}
