import msgspec
import pytest

from dtq.domain.outcome import Succeeded, classify
from tests.entrypoints.conftest import Api, MakeApi
from tests.entrypoints.driver import WORKER, finish_with, start_next

JSON = {"Content-Type": "application/json"}


async def test_a_new_task_is_accepted_with_its_id_and_place(api: Api) -> None:
    answer = await api.client.post("/api/v1/tasks", json={"task_type": "greet", "payload": {"a": 1}})

    body = answer.json()
    assert (202, "queued") == (answer.status_code, body["status"])
    assert f"/api/v1/tasks/{body['task_id']}" == answer.headers["location"]
    assert {"task_id", "status"} == set(body)


async def test_a_delayed_task_is_pending(api: Api) -> None:
    body = {"task_type": "greet", "payload": {}, "delay_seconds": 60}

    answer = await api.client.post("/api/v1/tasks", json=body)

    assert (202, "pending") == (answer.status_code, answer.json()["status"])


async def test_payload_and_metadata_come_back_as_they_were_sent(api: Api) -> None:
    payload = '{"big": 123456789012345678901234567890, "empty": [ ], "again": 1, "again": 2}'
    metadata = '{ "ttl_seconds": 60.50 }'
    body = f'{{"task_type": "greet", "metadata": {metadata}, "payload": {payload}}}'

    accepted = await api.client.post("/api/v1/tasks", content=body, headers=JSON)
    answer = await api.client.get(f"/api/v1/tasks/{accepted.json()['task_id']}")

    members = msgspec.json.decode(answer.content, type=dict[str, msgspec.Raw])
    assert (payload, metadata) == (bytes(members["payload"]).decode(), bytes(members["metadata"]).decode())


async def test_of_duplicate_members_the_last_one_counts(api: Api) -> None:
    body = '{"task_type": "unknown", "payload": {"a": 1}, "task_type": "greet", "payload": {"a": 2}}'

    accepted = await api.client.post("/api/v1/tasks", content=body, headers=JSON)
    answer = await api.client.get(f"/api/v1/tasks/{accepted.json()['task_id']}")

    assert ("greet", {"a": 2}) == (answer.json()["task_type"], answer.json()["payload"])


async def test_a_task_is_shown_with_all_its_fields(api: Api) -> None:
    given = {"queue": "other", "max_attempts": 3, "priority": 9, "timeout_ms": 1500, "idempotency_key": "k-1"}
    task_id = await api.submit(**given)

    body = (await api.client.get(f"/api/v1/tasks/{task_id}")).json()

    assert given == {name: body[name] for name in given}
    assert (task_id, "queued", 0, None, []) == tuple(
        body[name] for name in ("task_id", "status", "attempt", "result", "history")
    )
    assert body["created_at"] == body["available_at"]
    assert body["created_at"].endswith("Z")


async def test_execution_metadata_and_result_are_shown(api: Api) -> None:
    task_id = await api.submit()
    await finish_with(api.backend, await start_next(api.backend), Succeeded(result='{"text": "hi"}'))

    body = (await api.client.get(f"/api/v1/tasks/{task_id}")).json()

    assert ("succeeded", {"text": "hi"}, 1, WORKER) == tuple(
        body[name] for name in ("status", "result", "attempt", "worker_id")
    )
    assert body["duration_ms"] >= 0
    assert [1] == [record["attempt"] for record in body["history"]]


async def test_a_failure_is_shown(api: Api) -> None:
    task_id = await api.submit()
    failure = classify(ValueError("no\nway"), retryable=())
    await finish_with(api.backend, await start_next(api.backend), failure)

    body = (await api.client.get(f"/api/v1/tasks/{task_id}")).json()

    shown = {"status": "dead_lettered", "error_class": "ValueError", "error_message": "no way", "retryable": False}
    assert shown == {name: body[name] for name in shown}


async def test_the_header_wins_over_the_key_in_the_body(api: Api) -> None:
    body = {"task_type": "greet", "payload": {}, "idempotency_key": "from-body"}

    accepted = await api.client.post("/api/v1/tasks", json=body, headers={"Idempotency-Key": "from-header"})
    shown = await api.client.get(f"/api/v1/tasks/{accepted.json()['task_id']}")

    assert "from-header" == shown.json()["idempotency_key"]


async def test_a_wrong_key_in_the_body_is_refused_although_the_header_would_win(api: Api) -> None:
    body = {"task_type": "greet", "payload": {}, "idempotency_key": "a b"}

    answer = await api.client.post("/api/v1/tasks", json=body, headers={"Idempotency-Key": "from-header"})

    assert (400, "idempotency_key") == (answer.status_code, answer.json()["errors"][0]["field"])


async def test_an_empty_key_in_the_header_is_refused(api: Api) -> None:
    body = {"task_type": "greet", "payload": {}}

    answer = await api.client.post("/api/v1/tasks", json=body, headers={"Idempotency-Key": ""})

    assert (400, "idempotency_key") == (answer.status_code, answer.json()["errors"][0]["field"])


async def test_a_repeat_of_a_living_task_names_it(api: Api) -> None:
    task_id = await api.submit(idempotency_key="k-1")

    answer = await api.client.post(
        "/api/v1/tasks", json={"task_type": "greet", "payload": {}, "idempotency_key": "k-1"}
    )

    problem = answer.json()
    assert (409, "IDEMPOTENCY_IN_PROGRESS", task_id) == (answer.status_code, problem["code"], problem["task_id"])


async def test_a_repeat_of_an_ended_task_answers_with_it(api: Api) -> None:
    task_id = await api.submit(idempotency_key="k-1")
    await finish_with(api.backend, await start_next(api.backend), Succeeded(result="[1]"))

    answer = await api.client.post(
        "/api/v1/tasks", json={"task_type": "greet", "payload": {"other": 1}, "idempotency_key": "k-1"}
    )

    body = answer.json()
    assert (200, True, task_id, "succeeded", [1], {}) == (
        answer.status_code,
        *(body[name] for name in ("duplicate", "task_id", "status", "result", "payload")),
    )


async def test_a_full_queue_says_when_to_come_back(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_QUEUE_DEPTH": "1"})
    await api.submit()

    answer = await api.client.post("/api/v1/tasks", json={"task_type": "greet", "payload": {}})

    assert (429, "QUEUE_FULL", "1") == (answer.status_code, answer.json()["code"], answer.headers["retry-after"])


async def test_lists_are_newest_first_and_leave_payloads_out(api: Api) -> None:
    ids = [await api.submit(payload={"n": number}) for number in range(3)]

    tasks = (await api.client.get("/api/v1/tasks", params={"limit": 2})).json()["tasks"]

    assert [ids[2], ids[1]] == [task["task_id"] for task in tasks]
    assert not any({"payload", "result", "history"} & set(task) for task in tasks)


async def test_lists_can_be_narrowed(api: Api) -> None:
    await api.submit()
    wanted = await api.submit(queue="other", delay_seconds=5)
    await api.submit(queue="other")

    answer = await api.client.get("/api/v1/tasks", params={"queue": "other", "status": "pending"})

    assert [wanted] == [task["task_id"] for task in answer.json()["tasks"]]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=ten", "limit"),
        ("status=lost", "status"),
        ("queue=A", "queue"),
        ("queue=a%0A", "queue"),
    ],
)
async def test_a_bad_query_is_refused_by_name(api: Api, query: str, field: str) -> None:
    answer = await api.client.get(f"/api/v1/tasks?{query}")

    problem = answer.json()
    assert (400, "INVALID_REQUEST", [field]) == (
        answer.status_code,
        problem["code"],
        [error["field"] for error in problem["errors"]],
    )


@pytest.mark.parametrize("task_id", ["0" * 32, "0" * 31, "A" * 32, "a%0Ab", "%7B%7D"])
async def test_an_unknown_id_is_not_found(api: Api, task_id: str) -> None:
    shown = await api.client.get(f"/api/v1/tasks/{task_id}")
    cancelled = await api.client.post(f"/api/v1/tasks/{task_id}/cancel")

    for answer in (shown, cancelled):
        assert (404, "TASK_NOT_FOUND") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("delay", [0, 60])
async def test_a_waiting_task_is_cancelled_once(api: Api, delay: int) -> None:
    task_id = await api.submit(delay_seconds=delay)

    first = await api.client.post(f"/api/v1/tasks/{task_id}/cancel")
    second = await api.client.post(f"/api/v1/tasks/{task_id}/cancel")

    assert (202, "cancelled") == (first.status_code, first.json()["status"])
    assert (410, "TASK_TERMINAL") == (second.status_code, second.json()["code"])


async def test_a_running_task_is_asked_to_stop_each_time(api: Api) -> None:
    task_id = await api.submit()
    await start_next(api.backend)

    for _ in range(2):
        answer = await api.client.post(f"/api/v1/tasks/{task_id}/cancel")

        assert (409, "CANCEL_REQUESTED") == (answer.status_code, answer.json()["code"])
    assert (await api.client.get(f"/api/v1/tasks/{task_id}")).json()["cancel_requested"]
