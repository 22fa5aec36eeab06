"""What strangers get wrong: one problem document, 400 or 413, and nothing stored."""

import pytest

from tests.entrypoints.conftest import Api
from tests.entrypoints.serving import serving

JSON = {"Content-Type": "application/json"}
GOOD = b'"task_type": "greet", "payload": {}'
DEEP = b"[" * 65 + b"]" * 65

BODIES = {
    "empty": b"",
    "truncated": b'{"task_type": "greet", "payload": {"a": 1',
    "array": b"[]",
    "text": b'"greet"',
    "trailing": b"{" + GOOD + b"} x",
    "not utf-8": b'{"task_type": "greet", "payload": {"a": "\xff"}}',
    "utf-16": '{"task_type": "greet", "payload": {}}'.encode("utf-16"),
    "unknown field": b"{" + GOOD + b', "color": "red"}',
    "type missing": b'{"payload": {}}',
    "type null": b'{"task_type": null, "payload": {}}',
    "type number": b'{"task_type": 1, "payload": {}}',
    "type unknown": b'{"task_type": "other", "payload": {}}',
    "type with newline": b'{"task_type": "greet\\n", "payload": {}}',
    "type too long": b'{"task_type": "' + b"g" * 129 + b'", "payload": {}}',
    "payload missing": b'{"task_type": "greet"}',
    "payload null": b'{"task_type": "greet", "payload": null}',
    "payload array": b'{"task_type": "greet", "payload": [1]}',
    "payload text": b'{"task_type": "greet", "payload": "{}"}',
    "payload too deep": b'{"task_type": "greet", "payload": {"a": ' + DEEP + b"}}",
    "payload far too deep": b'{"task_type": "greet", "payload": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "payload NaN": b'{"task_type": "greet", "payload": {"a": NaN}}',
    "payload Infinity": b'{"task_type": "greet", "payload": {"a": -Infinity}}',
    "payload overflow": b'{"task_type": "greet", "payload": {"a": 1e999}}',
    "payload surrogate": b'{"task_type": "greet", "payload": {"a": "\\ud800"}}',
    "payload control character": b'{"task_type": "greet", "payload": {"a": "\x00"}}',
    "payload leading zero": b'{"task_type": "greet", "payload": {"a": 01}}',
    "queue empty": b"{" + GOOD + b', "queue": ""}',
    "queue upper case": b"{" + GOOD + b', "queue": "Mail"}',
    "queue with newline": b"{" + GOOD + b', "queue": "mail\\n"}',
    "queue too long": b"{" + GOOD + b', "queue": "' + b"q" * 65 + b'"}',
    "queue number": b"{" + GOOD + b', "queue": 7}',
    "queue surrogate": b"{" + GOOD + b', "queue": "\\udfff"}',
    "key empty": b"{" + GOOD + b', "idempotency_key": ""}',
    "key with space": b"{" + GOOD + b', "idempotency_key": "a b"}',
    "key too long": b"{" + GOOD + b', "idempotency_key": "' + b"k" * 201 + b'"}',
    "attempts zero": b"{" + GOOD + b', "max_attempts": 0}',
    "attempts over cap": b"{" + GOOD + b', "max_attempts": 11}',
    "attempts fraction": b"{" + GOOD + b', "max_attempts": 1.5}',
    "attempts boolean": b"{" + GOOD + b', "max_attempts": true}',
    "priority negative": b"{" + GOOD + b', "priority": -1}',
    "priority ten": b"{" + GOOD + b', "priority": 10}',
    "priority text": b"{" + GOOD + b', "priority": "5"}',
    "priority nested": b"{" + GOOD + b', "priority": ' + DEEP + b"}",
    "timeout zero": b"{" + GOOD + b', "timeout_ms": 0}',
    "timeout above an hour": b"{" + GOOD + b', "timeout_ms": 3600001}',
    "delay negative": b"{" + GOOD + b', "delay_seconds": -0.1}',
    "delay above 30 days": b"{" + GOOD + b', "delay_seconds": 2592001}',
    "delay overflow": b"{" + GOOD + b', "delay_seconds": 1e999}',
    "delay NaN": b"{" + GOOD + b', "delay_seconds": NaN}',
    "metadata array": b"{" + GOOD + b', "metadata": []}',
    "metadata too large": b"{" + GOOD + b', "metadata": {"a": "' + b"m" * 4096 + b'"}}',
    "metadata reserved": b"{" + GOOD + b', "metadata": {"discarded": true}}',
    "ttl zero": b"{" + GOOD + b', "metadata": {"ttl_seconds": 0}}',
    "ttl text": b"{" + GOOD + b', "metadata": {"ttl_seconds": "60"}}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_a_bad_body_is_refused_and_leaves_nothing(api: Api, body: bytes) -> None:
    answer = await api.client.post("/api/v1/tasks", content=body, headers=JSON)

    problem = answer.json()
    assert 400 == answer.status_code, problem
    assert "application/problem+json" == answer.headers["content-type"]
    assert problem["code"] in {"INVALID_TASK", "UNKNOWN_TASK_TYPE"}
    assert problem["detail"].isprintable()
    assert problem["errors"]
    assert [None] == await api.stored()


async def test_every_fault_of_a_body_is_named(api: Api) -> None:
    body = {"payload": [], "queue": "A", "priority": 10, "max_attempts": 0, "delay_seconds": -1, "color": "red"}

    answer = await api.client.post("/api/v1/tasks", json=body)

    fields = {error["field"] for error in answer.json()["errors"]}
    assert {"task_type", *body} == fields


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/jsonx"},
    ],
)
async def test_anything_but_json_is_refused(api: Api, headers: dict[str, str]) -> None:
    answer = await api.client.post("/api/v1/tasks", content=b"{" + GOOD + b"}", headers=headers)

    assert (400, "INVALID_REQUEST", "Content-Type") == (
        answer.status_code,
        answer.json()["code"],
        answer.json()["errors"][0]["field"],
    )
    assert [None] == await api.stored()


@pytest.mark.parametrize("path", ["/api/v1/tasks", "/api/v1/tasks/batch"])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Content-Type", ["application/json", "text/plain"]),
        ("Content-Type", ["text/plain", "application/json"]),
        ("Content-Type", ["application/json", "application/json"]),
        ("Idempotency-Key", ["one", "two"]),
        ("Idempotency-Key", ["one", "one"]),
    ],
)
async def test_of_two_headers_that_decide_neither_is_believed(
    api: Api, path: str, name: str, values: list[str]
) -> None:
    kind = [] if name == "Content-Type" else [("Content-Type", "application/json")]
    body = b"{" + GOOD + b"}" if path.endswith("tasks") else b'{"tasks": [{' + GOOD + b"}]}"

    async with serving(api.backend) as client:
        answer = await client.post(path, content=body, headers=[*kind, *[(name, value) for value in values]])

    assert (400, "INVALID_REQUEST", name) == (
        answer.status_code,
        answer.json()["code"],
        answer.json()["errors"][0]["field"],
    )
    assert [None] == await api.stored()


async def test_json_that_names_its_charset_is_read(api: Api) -> None:
    headers = {"Content-Type": 'Application/JSON; charset="UTF-8"'}

    answer = await api.client.post("/api/v1/tasks", content=b"{" + GOOD + b"}", headers=headers)

    assert 202 == answer.status_code


async def test_a_payload_over_the_limit_is_too_large(api: Api) -> None:
    answer = await api.client.post("/api/v1/tasks", json={"task_type": "greet", "payload": {"a": "x" * 262_144}})

    problem = answer.json()
    assert (413, "PAYLOAD_TOO_LARGE", "payload") == (
        answer.status_code,
        problem["code"],
        problem["errors"][0]["field"],
    )
    assert [None] == await api.stored()


async def test_a_payload_at_the_limit_is_accepted(api: Api) -> None:
    payload = '{"a":"' + "x" * (262_144 - 8) + '"}'
    body = f'{{"task_type": "greet", "payload": {payload}}}'

    answer = await api.client.post("/api/v1/tasks", content=body, headers=JSON)

    assert (262_144, 202) == (len(payload), answer.status_code)


async def test_a_body_over_every_limit_is_too_large(api: Api) -> None:
    answer = await api.client.post("/api/v1/tasks", content=b"x" * 400_000, headers=JSON)

    assert (413, "PAYLOAD_TOO_LARGE") == (answer.status_code, answer.json()["code"])
    assert "larger than 327680 bytes" in answer.json()["detail"]


async def test_a_payload_of_64_levels_is_accepted(api: Api) -> None:
    payload = b'{"a": ' + b"[" * 63 + b"]" * 63 + b"}"

    answer = await api.client.post(
        "/api/v1/tasks", content=b'{"task_type": "greet", "payload": ' + payload + b"}", headers=JSON
    )

    assert 202 == answer.status_code
