"""Check 4, where no key is set: a page of another origin that an operator's browser shows acts and submits nothing.

Acts have no body, so that a browser sends them for any page without asking first.
"""

import pytest

from tests.security.site import ACTS, Site

PAGES = {
    "another site": {"Origin": "http://evil.example"},
    "a sandboxed page": {"Origin": "null"},
    "a lookalike": {"Origin": "http://127.0.0.1.evil.example"},
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("name", PAGES)
def test_a_foreign_page_carries_out_no_act(site: Site, act: str, name: str) -> None:
    task_id = site.submitted("echo", queue="victims", delay_seconds=3600)
    trail = site.system.redis.xlen(site.system.keys.audit)

    answer = site.api.http.post(
        act.format(task_id).replace("default", "victims"), headers={**PAGES[name], "Content-Type": "text/plain"}
    )

    assert (403, "ORIGIN_NOT_ALLOWED") == (answer.status_code, answer.json()["code"])
    assert trail == site.system.redis.xlen(site.system.keys.audit)
    assert "pending" == site.api.http.get(f"/api/v1/tasks/{task_id}").json()["status"]


@pytest.mark.parametrize("path", ["/api/v1/tasks", "/api/v1/tasks/batch"])
@pytest.mark.parametrize("name", PAGES)
def test_a_foreign_page_submits_nothing_in_any_form(site: Site, path: str, name: str) -> None:
    body = b'{"task_type": "echo", "payload": {}}' if path.endswith("tasks") else b'{"tasks": []}'
    for content_type in ("application/json", "text/plain"):
        answer = site.api.http.post(path, content=body, headers={**PAGES[name], "Content-Type": content_type})

        assert (403, "ORIGIN_NOT_ALLOWED") == (answer.status_code, answer.json()["code"])


def test_the_apis_own_page_may(site: Site) -> None:
    answer = site.api.http.post("/api/v1/queue/default/resume", headers={"Origin": f"http://{site.address}"})

    assert 200 == answer.status_code


@pytest.mark.parametrize("path", ["/api/v1/queue/default/resume", "/api/v1/events"])
def test_a_name_that_was_rebound_to_this_machine_is_not_its_own(site: Site, path: str) -> None:
    headers = {"Origin": "http://evil.example", "Host": "evil.example"}
    method = "GET" if path.endswith("events") else "POST"

    with site.api.http.stream(method, path, headers=headers) as answer:
        assert 421 == answer.status_code
