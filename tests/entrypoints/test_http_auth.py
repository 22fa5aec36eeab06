import hashlib

import pytest

from tests.entrypoints.conftest import Api, MakeApi
from tests.entrypoints.serving import serving

KEY = "s3cret-key"


@pytest.fixture
async def guarded(make_api: MakeApi) -> Api:
    return await make_api({"DTQ_API_KEY": KEY})


@pytest.mark.parametrize("given", [None, b"", b"wrong", KEY.encode() + b"x", "schlüssel".encode(), b"\xff\xfe"])
async def test_a_cancel_without_the_right_key_is_refused(guarded: Api, given: bytes | None) -> None:
    task_id = await guarded.submit()
    headers = [] if given is None else [(b"X-API-Key", given)]

    answer = await guarded.client.post(f"/api/v1/tasks/{task_id}/cancel", headers=headers)

    assert (401, "UNAUTHORIZED") == (answer.status_code, answer.json()["code"])
    assert "www-authenticate" in answer.headers
    assert "queued" == (await guarded.client.get(f"/api/v1/tasks/{task_id}")).json()["status"]
    assert [] == await guarded.backend.audit.recent(limit=10)


async def test_who_has_no_key_does_not_learn_what_exists(guarded: Api) -> None:
    answer = await guarded.client.post(f"/api/v1/tasks/{'0' * 32}/cancel")

    assert 401 == answer.status_code


async def test_a_cancel_with_the_key_is_audited_with_its_fingerprint(guarded: Api) -> None:
    task_id = await guarded.submit()
    headers = {"X-API-Key": KEY, "X-Request-ID": "req-1"}

    answer = await guarded.client.post(f"/api/v1/tasks/{task_id}/cancel", headers=headers)

    [entry] = await guarded.backend.audit.recent(limit=10)
    fingerprint = hashlib.sha256(KEY.encode()).hexdigest()[:8]
    assert 202 == answer.status_code
    assert (f"api-key:{fingerprint}", "task.cancel", task_id, "req-1") == (
        entry.actor,
        entry.action,
        entry.task_id,
        entry.request_id,
    )


async def test_a_key_that_is_not_ascii_works(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_API_KEY": "schlüssel"})
    task_id = await api.submit()

    answer = await api.client.post(f"/api/v1/tasks/{task_id}/cancel", headers=[(b"X-API-Key", "schlüssel".encode())])

    assert 202 == answer.status_code


async def test_reads_and_submissions_need_no_key(guarded: Api) -> None:
    task_id = await guarded.submit()

    for path in (f"/api/v1/tasks/{task_id}", "/api/v1/tasks", "/health", "/ready"):
        assert 200 == (await guarded.client.get(path)).status_code


async def test_without_a_key_the_peer_is_the_actor(api: Api) -> None:
    task_id = await api.submit()

    await api.client.post(f"/api/v1/tasks/{task_id}/cancel")

    [entry] = await api.backend.audit.recent(limit=10)
    assert entry.actor.startswith("anonymous@")


async def test_a_refused_key_is_noted_and_not_audited(guarded: Api) -> None:
    await guarded.client.post(f"/api/v1/tasks/{'0' * 32}/cancel", headers={"X-Request-ID": "req-2"})

    [details] = [details for what, details in guarded.notes.notices if what == "refused"]
    assert ("task.cancel", "UNAUTHORIZED", "req-2") == (details["action"], details["code"], details["request_id"])
    assert [] == await guarded.backend.audit.recent(limit=10)


@pytest.mark.parametrize("path", ["/health", "/nowhere", "/api/v1/tasks?limit=0"])
async def test_a_harmless_request_id_comes_back(api: Api, path: str) -> None:
    answer = await api.client.get(path, headers={"X-Request-ID": "My_id.7-x"})

    assert "My_id.7-x" == answer.headers["x-request-id"]


@pytest.mark.parametrize("given", ["", "a" * 65, "a b", "ä", "a;b"])
async def test_any_other_request_id_is_replaced(api: Api, given: str) -> None:
    answer = await api.client.get("/health", headers=[(b"X-Request-ID", given.encode())])

    assert answer.headers["x-request-id"] != given
    assert 32 == len(answer.headers["x-request-id"])


async def test_of_two_request_ids_neither_is_taken(api: Api) -> None:
    async with serving(api.backend) as client:
        answer = await client.get("/health", headers=[("X-Request-ID", "one"), ("X-Request-ID", "one")])

    assert 32 == len(answer.headers["x-request-id"])


async def test_a_key_that_is_given_twice_opens_nothing(guarded: Api) -> None:
    task_id = await guarded.submit()

    for second in (KEY, "wrong"):
        headers = [("X-API-Key", KEY), ("X-API-Key", second)]
        async with serving(guarded.backend, api_key=KEY) as client:
            answer = await client.post(f"/api/v1/tasks/{task_id}/cancel", headers=headers)

        assert 401 == answer.status_code


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/tasks/{}/cancel/",
        "//api/v1/tasks/{}/cancel",
        "/api/v1/tasks/{}/%63ancel",
        "/api/v1/tasks/{}/cancel?x=1",
    ],
)
async def test_no_twist_of_the_path_leads_around_the_key(guarded: Api, path: str) -> None:
    task_id = await guarded.submit()

    answer = await guarded.client.post(path.format(task_id))

    assert answer.status_code in {401, 404}
    assert "queued" == (await guarded.client.get(f"/api/v1/tasks/{task_id}")).json()["status"]


async def test_what_may_be_asked_is_no_secret_and_does_nothing(guarded: Api) -> None:
    paths = ("tasks/0/cancel", "queue/mail/pause", "dlq/0/requeue", "dlq/purge")
    answers = [await guarded.client.options(f"/api/v1/{path}") for path in paths]

    assert [(204, "OPTIONS, POST")] * 4 == [(answer.status_code, answer.headers["allow"]) for answer in answers]
    assert "GET, OPTIONS, POST" == (await guarded.client.options("/api/v1/tasks")).headers["allow"]
    refused = await guarded.client.put("/api/v1/tasks")
    assert {"GET", "OPTIONS", "POST"} == set(refused.headers["allow"].split(", "))
    assert [] == await guarded.backend.audit.recent(limit=10)
