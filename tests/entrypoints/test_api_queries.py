"""Queries are read strictly: what is misspelled, repeated or out of bounds is refused by name."""

import pytest

from tests.entrypoints.conftest import Api

LISTS = ("tasks", "queues", "workers", "dlq", "audit")
OTHERS = {
    "GET": ("tasks/0", "queues/default", "workers/w", "dlq/0", "task-types"),
    "POST": (
        "tasks",
        "tasks/batch",
        "tasks/0/cancel",
        "queue/mail/pause",
        "queue/mail/resume",
        "queue/mail/purge",
        "dlq/0/requeue",
        "dlq/0/discard",
        "dlq/purge",
    ),
}


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", ["0", "501", "-1", "1.5", "ten", "", "1e2", "+5", " 5", "٣", "1" * 400])
async def test_a_limit_out_of_bounds_is_refused(api: Api, path: str, limit: str) -> None:
    answer = await api.client.get(f"/api/v1/{path}", params={"limit": limit})

    assert (400, "INVALID_REQUEST") == (answer.status_code, answer.json()["code"])
    assert [{"field": "limit", "problem": "must be an integer within 1..500"}] == answer.json()["errors"]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", ["1", "500", "007"])
async def test_a_limit_within_bounds_is_taken(api: Api, path: str, limit: str) -> None:
    assert 200 == (await api.client.get(f"/api/v1/{path}", params={"limit": limit})).status_code


@pytest.mark.parametrize("method", OTHERS)
async def test_what_is_not_known_is_refused_everywhere(api: Api, method: str) -> None:
    for path in (*OTHERS[method], *(LISTS if method == "GET" else ())):
        answer = await api.client.request(method, f"/api/v1/{path}", params={"stauts": "failed"})

        assert (400, "stauts") == (answer.status_code, answer.json()["errors"][0]["field"]), path
    assert [] == await api.backend.audit.recent(limit=10)


async def test_what_is_named_twice_is_refused(api: Api) -> None:
    answer = await api.client.get("/api/v1/tasks?limit=1&limit=2")

    assert (400, "given more than once") == (answer.status_code, answer.json()["errors"][0]["problem"])


async def test_a_refusal_does_not_grow_with_the_query(api: Api) -> None:
    query = "&".join(f"unknown-{number}=1" for number in range(500))

    answer = await api.client.get(f"/api/v1/tasks?{query}")

    assert (400, 20) == (answer.status_code, len(answer.json()["errors"]))


@pytest.mark.parametrize("wait", ["-1", "60.001", "soon", "nan", "inf", "1e3", "", "1_0"])
async def test_a_wait_out_of_bounds_is_refused(api: Api, wait: str) -> None:
    answer = await api.client.get(f"/api/v1/tasks/{'0' * 32}", params={"wait": wait})

    assert (400, "wait") == (answer.status_code, answer.json()["errors"][0]["field"])


@pytest.mark.parametrize("wait", ["0", "0.0", "1e-3", "-0.0"])
async def test_a_wait_within_bounds_is_taken(api: Api, wait: str) -> None:
    task_id = await api.submit()

    assert 200 == (await api.client.get(f"/api/v1/tasks/{task_id}", params={"wait": wait})).status_code
