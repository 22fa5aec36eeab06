"""The OpenAPI document is complete and true, and docs/api.md says the same."""

import re
from pathlib import Path
from typing import Any, Final

import httpx
import jsonschema_rs
import pytest
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from dtq import TaskContext, task
from dtq.entrypoints.container import connect
from dtq.entrypoints.http.app import create_app
from dtq.entrypoints.http.errors import MEANINGS, STATUS_OF
from dtq.handlers import Registry
from dtq.ports.backend import BackendOptions
from tests.entrypoints.conftest import Api, MakeApi
from tests.entrypoints.serving import KEY, container_over
from tests.entrypoints.test_api_states import TABLE

PAGE: Final = (Path(__file__).resolve().parents[2] / "docs/api.md").read_text()
ANYWHERE: Final = {"INTERNAL", "NOT_FOUND", "METHOD_NOT_ALLOWED"}
NOT_OF_REQUESTS: Final = {"UNSUITABLE_BROKER"}
PLAIN: Final = {"/metrics", "/api/v1/events"}
"""What answers with no JSON object, and has its own page."""

Json = dict[str, Any]


@pytest.fixture
async def document(make_api: MakeApi) -> Json:
    api = await make_api({"DTQ_API_KEY": KEY})
    whole: Json = (await api.client.get("/docs/openapi.json")).json()
    return whole


def operations(document: Json) -> dict[str, Json]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def answers(operation: Json) -> dict[str, set[str]]:
    """Each status of an operation with the codes that its examples name."""
    return {status: codes_of(response) for status, response in operation["responses"].items()}


def codes_of(response: Json) -> set[str]:
    content = response.get("content", {}).get("application/problem+json", {})
    return {example["value"]["code"] for example in content.get("examples", {}).values()}


def path_of(call: str) -> str:
    return call.partition(" ")[2]


def rows(section: str) -> list[list[str]]:
    """The cells of the table in a section of docs/api.md."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def application() -> Litestar:
    return create_app(container_over(connect("memory://", options=BackendOptions())))


def handlers() -> dict[str, HTTPRouteHandler]:
    return {
        f"{method} {route.path_format}": handler
        for route in application().routes
        for handler in getattr(route, "route_handlers", ())
        for method in handler.http_methods
        if method != "OPTIONS" and not route.path.startswith("/docs")
    }


async def test_every_route_is_in_the_document(document: Json) -> None:
    assert set(handlers()) == set(operations(document))


async def test_every_operation_tells_what_it_does_and_answers(document: Json) -> None:
    for call, operation in operations(document).items():
        assert operation["summary"], call
        assert operation["description"], call
        assert operation["tags"], call
        assert {tag["name"] for tag in document["tags"]} >= set(operation["tags"]), call
        assert any(status.startswith("2") for status in operation["responses"]), call
    identities = [operation["operationId"] for operation in operations(document).values()]
    assert len(set(identities)) == len(identities)


async def test_every_answer_has_an_example_that_fits_its_schema(document: Json) -> None:
    checked = 0
    for call, operation in operations(document).items():
        for status, response in operation["responses"].items():
            for kind, content in response.get("content", {}).items():
                if path_of(call) in PLAIN and kind != "application/problem+json":
                    continue
                assert content["examples"], (call, status)
                for example in content["examples"].values():
                    see_fits(document, content["schema"], example["value"])
                    checked += 1
    assert checked > 60


async def test_every_example_of_a_body_fits_its_schema(document: Json) -> None:
    for name in ("SubmitTask", "SubmitBatch"):
        schema = document["components"]["schemas"][name]
        for example in schema["examples"]:
            see_fits(document, schema, example)


def see_fits(document: Json, schema: Json, value: object) -> None:
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})
    assert [] == [str(error) for error in validator.iter_errors(value)]


async def test_every_error_is_under_its_status_with_its_meaning(document: Json) -> None:
    for call, operation in operations(document).items():
        for status, codes in answers(operation).items():
            for code in codes:
                assert int(status) == STATUS_OF[code], call
                assert MEANINGS[code] in operation["responses"][status]["description"], call
    assert set(MEANINGS) == set(STATUS_OF)


async def test_every_code_is_some_operations_or_anybodys(document: Json) -> None:
    named = {
        code for operation in operations(document).values() for codes in answers(operation).values() for code in codes
    }

    assert set(STATUS_OF) == named | ANYWHERE | NOT_OF_REQUESTS
    assert all(code in document["info"]["description"] for code in ANYWHERE)


async def test_exactly_the_destructive_acts_ask_for_the_key(document: Json, api: Api) -> None:
    guarded = {call for call, operation in operations(document).items() if operation.get("security")}
    acts = {call for call, handler in handlers().items() if "action" in handler.opt}
    open_document: Json = (await api.client.get("/docs/openapi.json")).json()

    assert acts == guarded
    assert 8 == len(acts)
    assert acts == {call for call, operation in operations(document).items() if "401" in operation["responses"]}
    assert {"type": "apiKey", "name": "X-API-Key", "in": "header"}.items() <= document["components"]["securitySchemes"][
        "ApiKey"
    ].items()
    assert not any(operation.get("security") for operation in operations(open_document).values())


async def test_what_a_handler_reads_of_a_query_is_described(document: Json) -> None:
    for call, handler in handlers().items():
        if not path_of(call).startswith("/api/v1") or path_of(call) in PLAIN:
            continue
        described = {one["name"] for one in operations(document)[call]["parameters"] if one["in"] == "query"}
        assert {query.name for query in handler.opt.get("queries", ())} == described, call


async def test_headers_of_answers_are_described(document: Json) -> None:
    for call, operation in operations(document).items():
        if path_of(call) in PLAIN:
            continue
        for status, response in operation["responses"].items():
            names = set(response["headers"])
            assert "X-Request-ID" in names, (call, status)
            assert ("Retry-After" in names) == (status in {"429", "503"}), (call, status)
            assert ("WWW-Authenticate" in names) == (status == "401"), (call, status)


@pytest.mark.parametrize(
    ("schema", "member", "word"),
    [
        ("QueueBody", "depth", "Exact"),
        ("QueueBody", "pending", "Exact"),
        ("QueueBody", "paused", "Exact"),
        ("QueueBody", "retry_scheduled", "Approximate"),
        ("QueueDetailBody", "dlq_depth", "Exact, and of all queues"),
        ("QueueDetailBody", "workers_active", "Approximate"),
        ("DeadLetterList", "dlq_depth", "Approximate"),
        ("WorkerBody", "status", "Approximate"),
        ("WorkerBody", "active_tasks", "Approximate"),
        ("WorkerBody", "tasks_processed", "Approximate"),
        ("TaskBody", "status", "Exact, but for expiry"),
    ],
)
async def test_a_figure_says_whether_it_is_exact(document: Json, schema: str, member: str, word: str) -> None:
    described = document["components"]["schemas"][schema]["properties"][member]

    assert described["description"].startswith(word)
    assert member in PAGE


async def test_the_document_names_the_task_types_and_bounds_of_this_deployment(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_ATTEMPTS": "3", "DTQ_TASK_TIMEOUT_MS": "1234"})

    document: Json = (await api.client.get("/docs/openapi.json")).json()

    members = document["components"]["schemas"]["SubmitTask"]["properties"]
    assert ["greet"] == members["task_type"]["enum"]
    assert (3, 1234) == (members["max_attempts"]["maximum"], members["timeout_ms"]["default"])


class Stop(Struct, tag="stop"):
    at: str


class Move(Struct, tag="move", forbid_unknown_fields=True):
    to: str
    over: list[Stop] = []


@task("plain")
def plain(payload: Json, ctx: TaskContext) -> Json:
    del ctx
    return payload


@task("drive:it")
def drive(payload: Move, ctx: TaskContext) -> str:
    del ctx
    return payload.to


@task("halt")
def halt(payload: Stop, ctx: TaskContext) -> str:
    del ctx
    return payload.at


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ({"task_type": "plain", "payload": {"to": 1}}, True),
        ({"task_type": "drive:it", "payload": {"type": "move", "to": "x"}}, True),
        (
            {"task_type": "drive:it", "payload": {"type": "move", "to": "x", "over": [{"type": "stop", "at": "y"}]}},
            True,
        ),
        ({"task_type": "drive:it", "payload": {"type": "move", "to": 1}}, False),
        ({"task_type": "drive:it", "payload": {"type": "move", "to": "x", "over": [{"type": "stop"}]}}, False),
        ({"task_type": "drive:it", "payload": {"type": "move", "to": "x", "more": 1}}, False),
        ({"task_type": "halt", "payload": {"type": "move", "to": "x"}}, False),
        ({"task_type": "other", "payload": {}}, False),
        ({"task_type": "plain", "payload": {}, "more": 1}, False),
    ],
)
async def test_the_document_and_the_api_agree_on_typed_payloads(body: Json, fits: bool) -> None:  # noqa: FBT001 - a case
    registry = Registry.of(plain, drive, halt)
    backend = connect("memory://", options=BackendOptions())
    app: Any = create_app(container_over(backend, registry=registry))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        document: Json = (await client.get("/docs/openapi.json")).json()
        answer = await client.post("/api/v1/tasks", json=body)
        types = (await client.get("/api/v1/task-types?limit=2")).json()["task_types"]

    schema = {"$ref": "#/components/schemas/SubmitTask", "components": document["components"]}
    assert fits == jsonschema_rs.Draft202012Validator(schema).is_valid(body)
    assert (202 if fits else 400) == answer.status_code, answer.text
    assert ["drive:it", "halt"] == [one["task_type"] for one in types]
    assert jsonschema_rs.Draft202012Validator(types[0]["payload_schema"]).is_valid({"type": "move", "to": "x"})


async def test_the_page_lists_every_endpoint_with_its_answers(document: Json) -> None:
    listed = {call.strip("`"): answers_in(cell) for call, _, cell, _ in rows("Endpoints")}

    assert {call: answers(operation) for call, operation in operations(document).items()} == listed


def answers_in(cell: str) -> dict[str, set[str]]:
    parts = [re.split(r"[ ,]+", answer.strip()) for answer in cell.split(";")]
    return {status: set(codes) for status, *codes in parts}


async def test_the_page_marks_what_needs_the_key(document: Json) -> None:
    marked = {call.strip("`") for call, key, *_ in rows("Endpoints") if key == "key"}

    assert {call for call, operation in operations(document).items() if operation.get("security")} == marked


def test_the_page_has_the_table_of_states() -> None:
    columns = list(TABLE.values())
    expected = {
        state: [" ".join(filter(None, (str(column[state][0]), column[state][1]))) for column in columns]
        for state in columns[0]
    }

    assert expected == {state: cells for state, *cells in rows("What each act answers, by state")}
