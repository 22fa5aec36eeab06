"""A page that an operator's browser shows may ask for no act, and submit nothing, unless its origin is allowed."""

import pytest

from tests.entrypoints.conftest import Api, MakeApi

FOREIGN = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
KEY = {"X-API-Key": "s3cret-key"}
ID = "0" * 32
ACTS = (
    f"tasks/{ID}/cancel",
    "queue/mail/pause",
    "queue/mail/resume",
    "queue/mail/purge",
    f"dlq/{ID}/requeue",
    f"dlq/{ID}/discard",
    "dlq/purge",
)
SUBMISSIONS = ("tasks", "tasks/batch")


@pytest.mark.parametrize("path", [*ACTS, *SUBMISSIONS])
@pytest.mark.parametrize("key", ["", KEY["X-API-Key"]], ids=["without a key", "with the key"])
async def test_a_foreign_page_is_refused_before_anything_is_looked_at(make_api: MakeApi, path: str, key: str) -> None:
    api = await make_api({"DTQ_API_KEY": key})

    for headers in (FOREIGN, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await api.client.post(f"/api/v1/{path}", headers={**headers, **KEY})

        assert (403, "ORIGIN_NOT_ALLOWED") == (answer.status_code, answer.json()["code"])
    assert [] == await api.backend.audit.recent(limit=10)
    assert ["ORIGIN_NOT_ALLOWED"] * 3 == [told["code"] for what, told in api.notes.notices if what == "refused"]


async def test_a_foreign_page_cancels_nothing(api: Api) -> None:
    task_id = await api.submit()

    await api.client.post(f"/api/v1/tasks/{task_id}/cancel", headers=FOREIGN)

    assert "queued" == (await api.client.get(f"/api/v1/tasks/{task_id}")).json()["status"]


@pytest.mark.parametrize("allowed", ["https://ops.example", "*,https://ops.example"])
async def test_the_apis_own_pages_and_those_that_are_named_may_act(make_api: MakeApi, allowed: str) -> None:
    api = await make_api({"DTQ_WS_ALLOWED_ORIGINS": allowed})
    own = str(api.client.base_url).rstrip("/")

    for origin in (own, "https://ops.example"):
        answer = await api.client.post("/api/v1/queue/mail/pause", headers={"Origin": origin})
        assert 200 == answer.status_code


async def test_a_star_lets_nobody_act(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_WS_ALLOWED_ORIGINS": "*"})

    assert 403 == (await api.client.post("/api/v1/queue/mail/pause", headers=FOREIGN)).status_code


async def test_a_name_that_leads_to_this_machine_is_not_its_own(make_api: MakeApi) -> None:
    led_here = {"Origin": "http://evil.example", "Host": "evil.example"}
    local, reachable = await make_api({"DTQ_API_HOST": "127.0.0.1"}), await make_api({"DTQ_API_HOST": "192.0.2.1"})

    assert 403 == (await local.client.post("/api/v1/queue/mail/pause", headers=led_here)).status_code
    assert 200 == (await reachable.client.post("/api/v1/queue/mail/pause", headers=led_here)).status_code


async def test_looking_needs_no_origin_and_asking_what_may_be_asked_is_free(api: Api) -> None:
    for path in ("tasks", "queues", "dlq", "audit"):
        assert 200 == (await api.client.get(f"/api/v1/{path}", headers=FOREIGN)).status_code
    for path in (*ACTS, *SUBMISSIONS):
        answer = await api.client.options(f"/api/v1/{path}", headers=FOREIGN)
        assert 204 == answer.status_code
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "path", ["/health", "/ready", "/metrics", "/nowhere", "/api/v1/tasks", "/api/v1/tasks/x", "/docs", "/docs/nowhere"]
)
async def test_no_answer_is_to_be_taken_for_what_it_does_not_say_it_is(api: Api, path: str) -> None:
    answer = await api.client.get(path)

    assert ["nosniff"] == answer.headers.get_list("x-content-type-options")
