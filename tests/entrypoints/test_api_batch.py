"""Many submissions in one request."""

import json
from typing import Any

import pytest

from dtq.application.pace import PIECE_BYTES, TURNS
from dtq.domain.outcome import Succeeded
from tests.application.test_pace import Rounds
from tests.entrypoints.conftest import Api, MakeApi
from tests.entrypoints.driver import finish_with, start_next
from tests.entrypoints.serving import serving

JSON = {"Content-Type": "application/json"}
GOOD: dict[str, Any] = {"task_type": "greet", "payload": {}}


async def send(api: Api, *items: object) -> dict[str, Any]:
    answer = await api.client.post("/api/v1/tasks/batch", json={"tasks": list(items)})
    assert 200 == answer.status_code, answer.text
    body: dict[str, Any] = answer.json()
    assert list(range(len(items))) == [result["index"] for result in body["results"]]
    return body


def codes(body: dict[str, Any]) -> list[tuple[int, str | None]]:
    return [(result["status_code"], result.get("problem", {}).get("code")) for result in body["results"]]


async def test_each_item_gets_a_task_of_its_own_in_order(api: Api) -> None:
    body = await send(api, *[{**GOOD, "payload": {"n": number}} for number in range(250)])

    ids = [result["task_id"] for result in body["results"]]
    assert (250, 0, 0) == (body["accepted"], body["duplicates"], body["refused"])
    for number in (0, 99, 100, 249):
        shown = (await api.client.get(f"/api/v1/tasks/{ids[number]}")).json()
        assert {"n": number} == shown["payload"]


BAD: dict[str, tuple[object, int, str]] = {
    "no object": (3, 400, "INVALID_TASK"),
    "null": (None, 400, "INVALID_TASK"),
    "out of bounds": ({**GOOD, "priority": 10}, 400, "INVALID_TASK"),
    "unknown type": ({**GOOD, "task_type": "other"}, 400, "UNKNOWN_TASK_TYPE"),
    "unknown field": ({**GOOD, "color": "red"}, 400, "INVALID_TASK"),
    "too large": ({**GOOD, "payload": {"a": "x" * 262_144}}, 413, "PAYLOAD_TOO_LARGE"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_item_harms_no_other(api: Api, name: str) -> None:
    item, status, code = BAD[name]

    body = await send(api, GOOD, item, GOOD)

    assert [(202, None), (status, code), (202, None)] == codes(body)
    assert (2, 0, 1) == (body["accepted"], body["duplicates"], body["refused"])
    assert "task_id" not in body["results"][1]


@pytest.mark.parametrize("depth", [100, 500, 5_000, 200_000])
@pytest.mark.parametrize("kind", [("[", "]"), ('{"a":', "}")], ids=["arrays", "objects"])
async def test_an_item_that_nests_deeper_than_any_parser_follows_harms_no_other(
    api: Api, depth: int, kind: tuple[str, str]
) -> None:
    good, (begin, end) = json.dumps(GOOD), kind
    deep = '{"task_type": "greet", "payload": {"a": ' + begin * depth + "0" + end * depth + ', "b": "]}"}}'

    answer = await api.client.post(
        "/api/v1/tasks/batch", content=f'{{"tasks": [{good}, {deep}, {good}]}}', headers=JSON
    )

    assert [(202, None), (400, "INVALID_TASK"), (202, None)] == codes(answer.json())
    assert "payload" == answer.json()["results"][1]["problem"]["errors"][0]["field"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"tasks": {}}',
        b'{"tasks": []}',
        b'{"tasks": [{}], "more": 1}',
        b'{"tasks": [{}',
        b'{"tasks": [{}]} x',
        b'{"tasks": ' + b"[" * 100_000,
        b'{"tasks": [' + b"[" * 600_000 + b"]" * 600_000 + b"]}",
        b'{"tasks": [{"a": "\xff"}]',
    ],
    ids=range(12),
)
async def test_what_is_no_batch_is_refused_whole(api: Api, body: bytes) -> None:
    answer = await api.client.post("/api/v1/tasks/batch", content=body, headers=JSON)

    assert (400, "INVALID_REQUEST") == (answer.status_code, answer.json()["code"])
    assert [None] == await api.stored()


async def test_a_thousand_items_are_taken_and_no_more(api: Api) -> None:
    await send(api, *[GOOD] * 1000)

    answer = await api.client.post("/api/v1/tasks/batch", json={"tasks": [GOOD] * 1001})

    assert (413, "PAYLOAD_TOO_LARGE") == (answer.status_code, answer.json()["code"])
    assert "1001 submissions, at most 1000" in answer.json()["detail"]


async def test_a_request_over_its_limit_is_too_large(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_BATCH_BYTES": "500000"})
    item = {**GOOD, "payload": {"a": "x" * 200_000}}

    await send(api, item, item)
    answer = await api.client.post("/api/v1/tasks/batch", json={"tasks": [item, item, item]})

    assert (413, "PAYLOAD_TOO_LARGE") == (answer.status_code, answer.json()["code"])
    assert "larger than 500000 bytes" in answer.json()["detail"]


async def test_a_single_submission_keeps_its_own_limit(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_PAYLOAD_BYTES": "1000"})

    answer = await api.client.post("/api/v1/tasks", content=b"x" * 70_000, headers=JSON)

    assert (413, "the request is larger than 66536 bytes") == (answer.status_code, answer.json()["detail"])


async def test_an_item_that_is_too_large_to_be_any_is_not_looked_into(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_PAYLOAD_BYTES": "1000"})

    def no_task(size: int) -> dict[str, str]:
        return {"a": "x" * (size - len('{"a": ""}'))}

    body = json.dumps({"tasks": [GOOD, no_task(1000 + 65_536), no_task(1000 + 65_537), GOOD]})
    answer = await api.client.post("/api/v1/tasks/batch", content=body, headers=JSON)

    assert [(202, None), (400, "INVALID_TASK"), (413, "PAYLOAD_TOO_LARGE"), (202, None)] == codes(answer.json())
    assert "item: 66537 bytes, at most 66536 are allowed" == answer.json()["results"][2]["problem"]["detail"]


async def rounds_of(api: Api, content: str) -> int:
    """How often the loop goes round until a batch is answered."""
    rounds = Rounds()
    async with serving(api.backend) as client:
        answer = await client.post("/api/v1/tasks/batch", content=content, headers=JSON)
    rounds.end()
    assert 200 == answer.status_code
    return rounds.count


async def test_others_have_the_loop_between_items(api: Api) -> None:
    # more than an item may have, so that it is only read
    item = json.dumps({**GOOD, "payload": {"a": "x" * 6 * PIECE_BYTES}})

    one, ten = [await rounds_of(api, f'{{"tasks": [{", ".join([item] * count)}]}}') for count in (1, 10)]

    # the loop may go round for the client, too
    assert ten - one >= 9 * TURNS


async def test_others_have_the_loop_while_a_deep_item_is_looked_for(api: Api) -> None:
    deep = "[" * 3_000 + "]" * 3_000
    few, many = [
        await rounds_of(api, f'{{"tasks": [{deep}, [{", ".join(["0, []"] * count)}]]}}') for count in (10, 50_000)
    ]

    assert many - few >= 9 * TURNS


async def test_each_item_carries_its_own_key(api: Api) -> None:
    first = await send(api, {**GOOD, "idempotency_key": "a"}, {**GOOD, "idempotency_key": "b"})
    ended = await start_next(api.backend)
    await finish_with(api.backend, ended, Succeeded(result="1"))

    body = await send(api, *[{**GOOD, "idempotency_key": key} for key in ("a", "b", "c", "c")])

    ids = [result["task_id"] for result in first["results"]]
    assert [
        (200, None),
        (409, "IDEMPOTENCY_IN_PROGRESS"),
        (202, None),
        (409, "IDEMPOTENCY_IN_PROGRESS"),
    ] == codes(body)
    results = body["results"]
    assert (ids[0], "succeeded", True) == tuple(results[0][name] for name in ("task_id", "status", "duplicate"))
    assert ids[1] == results[1]["task_id"] == results[1]["problem"]["task_id"]
    assert results[2]["task_id"] == results[3]["task_id"]


async def test_a_key_for_the_whole_batch_is_refused(api: Api) -> None:
    answer = await api.client.post(
        "/api/v1/tasks/batch", json={"tasks": [GOOD]}, headers={"Idempotency-Key": "one-for-all"}
    )

    assert (400, "Idempotency-Key") == (answer.status_code, answer.json()["errors"][0]["field"])
    assert [None] == await api.stored()


async def test_what_no_longer_fits_says_when_to_come_back(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_QUEUE_DEPTH": "2"})

    body = await send(api, GOOD, GOOD, GOOD, {**GOOD, "queue": "other"})

    assert [(202, None), (202, None), (429, "QUEUE_FULL"), (202, None)] == codes(body)
    assert 1 == body["results"][2]["problem"]["retry_after_s"]


async def test_payloads_are_kept_as_they_were_sent(api: Api) -> None:
    payload = '{"big": 123456789012345678901234567890, "e": [ ]}'
    body = f'{{"tasks": [{{"task_type": "greet", "payload": {payload}}}]}}'

    [result] = (await api.client.post("/api/v1/tasks/batch", content=body, headers=JSON)).json()["results"]
    answer = await api.client.get(f"/api/v1/tasks/{result['task_id']}")

    assert payload in answer.text


@pytest.mark.parametrize("content_type", ["text/plain", ""])
async def test_anything_but_json_is_refused(api: Api, content_type: str) -> None:
    answer = await api.client.post("/api/v1/tasks/batch", content=b"{}", headers={"Content-Type": content_type})

    assert (400, "Content-Type") == (answer.status_code, answer.json()["errors"][0]["field"])
