"""Check 5: markup in any field is text everywhere: no page renders it, and what is no page says so by its type.

The API's page itself: tests/entrypoints/test_api_pages.py. A terminal: tests/entrypoints/test_cli.py.
"""

import json
from typing import Any
from urllib.parse import quote

import pytest
from websockets.sync.client import connect

from tests.scraped import Scraped
from tests.security.site import ENTRY, WITH_KEY, WITHIN_S, Site

MARKUP = "<script>alert('dtq-markup')</script><img src=x onerror=alert(1)>\"'><svg/onload=alert(2)>"
HEADERS = {"X-API-Key": MARKUP, "X-Request-ID": MARKUP, "Referer": MARKUP, "User-Agent": MARKUP}
TASK = {"task_type": "echo", "payload": {"text": MARKUP, MARKUP: 1}, "metadata": {MARKUP: MARKUP}}
PAGES = ("/docs", "/docs/", "/docs/openapi.json")
ENCODED = quote(MARKUP.replace("/", ""), safe="")
NOWHERE = (f"/{ENCODED}", f"/docs/{ENCODED}", f"/docs/assets/{ENCODED}", f"/api/v1/{ENCODED}", f"/ws/{ENCODED}")
REFUSED = (
    f"/api/v1/tasks/{ENCODED}",
    f"/api/v1/dlq/{ENCODED}",
    f"/api/v1/workers/{ENCODED}",
    f"/api/v1/queues/{ENCODED}",
    f"/api/v1/tasks?{ENCODED}=1",
    f"/api/v1/tasks?queue={ENCODED}",
    f"/api/v1/events?type={ENCODED}",
)
LISTS = ("/api/v1/tasks", "/api/v1/dlq", "/api/v1/queues", "/api/v1/workers", "/api/v1/audit", "/api/v1/task-types")


@pytest.fixture(scope="module")
def marked(site: Site) -> str:
    """The id of a task whose every free field is markup, beside dead letters, an actor and a worker made of it."""
    for field in ("task_type", "task_id", "payload", "idempotency_key", "queue"):
        site.slip_in({**ENTRY, field: MARKUP})
    site.see_entries_gone()
    keys, redis = site.system.keys, site.system.redis
    redis.sadd(keys.workers, "worker-<script>")
    site.run("raise", '{"error": "strange name"}', max_attempts=1)
    task_id = site.run(
        "echo", json.dumps(TASK["payload"]), metadata=TASK["metadata"], idempotency_key="<script>alert(1)</script>"
    )["task_id"]
    site.spoil(task_id, error_message=MARKUP, error_class=MARKUP, worker_id=MARKUP, retryable="0")
    return str(task_id)


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_anything_of_a_task(site: Site, path: str) -> None:
    answer = site.api.http.get(path, headers=HEADERS, params={"x": MARKUP}, follow_redirects=False)

    assert "dtq-markup" not in answer.text
    assert "onload" not in answer.text.partition("<script src=")[0]
    assert "nosniff" == answer.headers["x-content-type-options"]


def test_the_only_html_is_the_page_of_the_api(site: Site, marked: str) -> None:
    paths = [*LISTS, *NOWHERE, *REFUSED, f"/api/v1/tasks/{marked}", "/metrics", "/health", "/ready"]

    answers = {path: site.api.http.get(path, headers=HEADERS) for path in paths}

    kinds = {path: answer.headers["content-type"].partition(";")[0] for path, answer in answers.items()}
    assert {"application/json", "application/problem+json", "text/plain"} == set(kinds.values())
    assert "text/plain" == kinds["/metrics"]
    for path, answer in answers.items():
        if "json" in kinds[path]:
            json.loads(answer.text)


def test_json_hands_markup_out_as_it_came_in(site: Site, marked: str) -> None:
    task = site.api.http.get(f"/api/v1/tasks/{marked}").json()

    assert (TASK["payload"], TASK["metadata"]) == (task["payload"], task["metadata"])
    assert (MARKUP, MARKUP) == (task["error_message"], task["error_class"])


@pytest.mark.parametrize("path", NOWHERE)
def test_a_page_that_is_not_there_does_not_repeat_what_was_asked_for(site: Site, path: str) -> None:
    answer = site.api.http.get(path)

    assert 404 == answer.status_code
    assert "script" not in answer.text


def test_metrics_have_no_label_of_a_stranger(site: Site, marked: str) -> None:
    assert marked
    site.post(json.dumps({"task_type": MARKUP, "payload": {}, "queue": MARKUP}))
    site.api.http.request("BREW", f"/{ENCODED}")

    text = site.api.http.get("/metrics").text

    assert 0 < Scraped(text).series
    assert "alert" not in text


def test_a_socket_sends_json_text_and_nothing_of_a_payload(site: Site) -> None:
    with connect(f"ws://{site.address}/ws/events?queue=default") as listener:
        listener.recv(WITHIN_S)
        task_id = site.submitted("echo", json.dumps(TASK["payload"]), metadata=TASK["metadata"])
        messages: list[dict[str, Any]] = []
        while not messages or messages[-1]["type"] != "TASK_SUCCEEDED":
            messages.append(json.loads(listener.recv(WITHIN_S)))

    assert {task_id} == {message["task_id"] for message in messages}
    assert "dtq-markup" not in json.dumps(messages)


def test_what_an_operator_sends_stays_text_in_the_trail(guarded: Site) -> None:
    guarded.api.http.post(f"/api/v1/tasks/{ENCODED}/cancel", headers={**WITH_KEY, "X-Request-ID": MARKUP})

    answer = guarded.api.http.get("/api/v1/audit", params={"limit": 1})

    assert "application/json" == answer.headers["content-type"]
    [entry] = answer.json()["entries"]
    assert ("task.cancel", "TASK_NOT_FOUND") == (entry["action"], entry["outcome"])
    assert entry["task_id"].startswith("<script>alert")
    assert "script" not in entry["request_id"]
