from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.domain import errors
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.errors import BrokerUnavailable, DtqError, OutcomeUnknown, RecordUnreadable, StepStopped
from dtq.domain.text import class_name
from dtq.entrypoints.container import connect
from dtq.entrypoints.http.errors import STATUS_OF
from dtq.ports.backend import Backend, BackendOptions
from dtq.ports.environment import ServerFacts
from tests.entrypoints.conftest import Api, MakeApi
from tests.security.unnameable import ERRORS


class Broken:
    """A port whose every call raises, or answers with a value."""

    def __init__(self, answer: object, **others: object) -> None:
        self._answer = answer
        self._others: Mapping[str, object] = others

    def __getattr__(self, name: str) -> Any:
        async def call(*_: object, **__: object) -> object:
            answer = self._others.get(name, self._answer)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def memory(**ports: object) -> Backend:
    backend = connect("memory://", options=BackendOptions())
    return replace(backend, **ports)


async def test_every_code_of_the_domain_has_a_status() -> None:
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, DtqError)}

    assert codes <= set(STATUS_OF)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "NOT_FOUND"),
        ("GET", "/docs/nowhere", 404, "NOT_FOUND"),
        ("PUT", "/api/v1/tasks", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/api/v1/tasks/0/cancel", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_the_frameworks_own_errors_have_the_same_form(
    api: Api, method: str, path: str, status: int, code: str
) -> None:
    answer = await api.client.request(method, path)

    problem = answer.json()
    assert (status, "application/problem+json") == (answer.status_code, answer.headers["content-type"])
    assert (status, code) == (problem["status"], problem["code"])
    assert {"title", "detail"} <= set(problem)


@pytest.mark.parametrize("error", ["anonymous", "textless", "wordy"])
async def test_an_unforeseen_error_that_cannot_be_named_is_noted_too(make_api: MakeApi, error: str) -> None:
    api = await make_api(backend=memory(broker=Broken(ERRORS[error]())))

    answer = await api.client.get("/api/v1/tasks")

    assert (500, "INTERNAL") == (answer.status_code, answer.json()["code"])
    assert [class_name(ERRORS[error]())] == [details["error_class"] for _, details in api.notes.notices]


async def test_an_unforeseen_error_tells_nothing_and_is_noted(make_api: MakeApi) -> None:
    api = await make_api(backend=memory(broker=Broken(ZeroDivisionError("secret"))))

    answer = await api.client.get("/api/v1/tasks")

    assert (500, "INTERNAL") == (answer.status_code, answer.json()["code"])
    assert "secret" not in answer.text
    [(what, details)] = api.notes.notices
    assert ("request_failed", "ZeroDivisionError") == (what, details["error_class"])
    assert "secret" not in str(details)


async def test_a_record_that_cannot_be_read_is_no_outage_and_not_to_be_tried_again(make_api: MakeApi) -> None:
    api = await make_api(backend=memory(broker=Broken(RecordUnreadable("a record cannot be read: status"))))

    answer = await api.client.get(f"/api/v1/tasks/{'0' * 32}")

    problem = answer.json()
    assert (500, "RECORD_UNREADABLE") == (answer.status_code, problem["code"])
    assert "a record cannot be read: status; trying again does not help: see `dtq doctor`" == problem["detail"]
    assert "retry-after" not in answer.headers
    assert "retry_after_s" not in problem
    assert [] == api.notes.notices


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BrokerUnavailable("host"), "nothing was done"),
        (OutcomeUnknown("host"), "did not answer in time: the request may or may not"),
        (StepStopped("host"), "stopped half-way: the request may or may not"),
    ],
)
async def test_a_broker_that_is_away_is_503(make_api: MakeApi, error: Exception, words: str) -> None:
    api = await make_api(backend=memory(broker=Broken(error)))

    answer = await api.client.post("/api/v1/tasks", json={"task_type": "greet", "payload": {}})

    problem = answer.json()
    assert (503, "BROKER_UNAVAILABLE", "1") == (answer.status_code, problem["code"], answer.headers["retry-after"])
    assert words in problem["detail"]


async def test_health_needs_no_broker(make_api: MakeApi) -> None:
    down = Broken(BrokerUnavailable("away"))
    api = await make_api(backend=memory(broker=down, server=Broken(BrokerUnavailable("away"), close=None), queues=down))

    answer = await api.client.get("/health")

    assert (200, {"status": "ok"}) == (answer.status_code, answer.json())


async def test_readiness_names_what_is_missing(make_api: MakeApi) -> None:
    api = await make_api(backend=memory(server=Broken(BrokerUnavailable("away"), close=None)))

    answer = await api.client.get("/ready")

    assert (503, "1") == (answer.status_code, answer.headers["retry-after"])
    assert ["BrokerUnavailable: away"] == answer.json()["problems"]


async def test_readiness_passes_problems_of_the_server_on(make_api: MakeApi) -> None:
    facts = ServerFacts(description="Redis", uptime=timedelta(), problems=("evicts keys",))
    api = await make_api(backend=memory(server=Broken(facts)))

    answer = await api.client.get("/ready")

    assert (503, ["evicts keys"]) == (answer.status_code, answer.json()["problems"])


async def test_readiness_warns_of_a_clock_that_is_off(make_api: MakeApi) -> None:
    facts = ServerFacts(description="Redis", uptime=timedelta(), host_offset=timedelta(seconds=-3))
    api = await make_api(backend=memory(server=Broken(facts)))

    answer = await api.client.get("/ready")

    assert (200, "ready") == (answer.status_code, answer.json()["status"])
    assert "off from the broker's by -3 s" in answer.json()["warnings"][0]


async def test_readiness_mends_a_default_queue_that_is_lost(api: Api) -> None:
    lost = await api.backend.upkeep.retire(DEFAULT_QUEUE)

    answer = await api.client.get("/ready")

    assert (True, 200) == (lost, answer.status_code)
    assert DEFAULT_QUEUE in await api.backend.queues.names()


async def test_the_pages_ask_no_other_host(api: Api) -> None:
    page = await api.client.get("/docs")
    document = await api.client.get("/docs/openapi.json")

    assert (200, 200) == (page.status_code, document.status_code)
    assert "//" not in page.text.replace("<!doctype html>", "")
    assert {"/api/v1/tasks", "/api/v1/tasks/{task_id}", "/api/v1/tasks/{task_id}/cancel", "/health", "/ready"} <= set(
        document.json()["paths"]
    )


async def test_a_broker_without_room_is_ready_for_whatever_frees_some(api: Api) -> None:
    task_id = await api.submit()
    backend: Any = api.backend
    backend.broker._state.faults.memory_is_full = True  # noqa: SLF001 - harm that no port does

    refused = await api.client.post("/api/v1/tasks", json={"task_type": "greet", "payload": {}})

    assert (503, 200) == (refused.status_code, (await api.client.get("/ready")).status_code)
    assert 202 == (await api.client.post(f"/api/v1/tasks/{task_id}/cancel")).status_code
