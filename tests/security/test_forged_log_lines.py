"""Check 6: one event is one line, whoever chose the words of it, and no word of a payload stands in any.

Each part of a line by itself: tests/adapters/test_log_lines.py. Payloads, keys and passwords, planted everywhere:
tests/integration/test_metrics_and_secrets.py.
"""

import json
import re
from urllib.parse import quote

import pytest

from tests.judged.waiting import wait_until
from tests.security.site import WITH_KEY, WITHIN_S, Site

FORGERIES = {
    "line feed": "\n2026-01-01T00:00:00.000000Z [critical] FORGED service=api",
    "carriage return": "\rFORGED",
    "JSON": '\n{"timestamp":"2026-01-01T00:00:00Z","level":"critical","event":"FORGED"}',
    "line separator": "\u2028FORGED",
    "paragraph separator": "\u2029FORGED",
    "next line": "\x85FORGED",
    "vertical tab": "\x0bFORGED",
    "form feed": "\x0cFORGED",
    "file separator": "\x1cFORGED",
    "escape sequence": "\x1b[2J\x1b[31mFORGED",
    "fields": "FORGED level=critical status=succeeded service=api",
    "NUL": "\x00FORGED",
    "long": "FORGED" * 170_000,
}
BREAKS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
LINE = re.compile(r"\d{4}-\d{2}-\d{2}T[\d:.]+Z \[(debug|info|warning|error)\] .+")
LONGEST = 10_000


def see_well_formed(log: str, *, as_json: bool) -> None:
    """See that each line is one event by its form, and has nothing that some reader takes for the end of a line."""
    for line in log.split("\n")[:-1]:
        assert len(line) < LONGEST
        assert not BREAKS.search(line), line[:300]
        if as_json:
            assert {"timestamp", "level", "service", "event"} <= set(json.loads(line))
        else:
            assert LINE.fullmatch(line), line[:300]
            assert not line.startswith("2026-01-01")


def send_forged(site: Site, text: str) -> None:
    """Put a text wherever a request has room for one."""
    safe = quote(text[:2000], safe="")
    header = re.sub(r"[\x00-\x1f\x7f]", "", text)[:2000].encode("utf-8")
    headers = [(name.encode(), header) for name in ("X-API-Key", "X-Request-ID", "Idempotency-Key", "User-Agent")]
    http = site.api.http
    http.get(f"/{safe}", headers=headers)
    http.post(f"/api/v1/tasks/{safe}/cancel", headers=[(b"X-API-Key", WITH_KEY["X-API-Key"].encode()), *headers[1:]])
    http.post(f"/api/v1/queue/{safe}/pause", headers=headers)
    http.get("/api/v1/events", params={"type": text[:2000]}, headers=headers)
    members = {"task_type": "echo", "payload": {}}
    for name in ("task_type", "queue", "idempotency_key", "priority", text[:2000]):
        http.post("/api/v1/tasks", json={**members, name: text[:200_000]}, headers={"X-Request-ID": safe[:60]})


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_no_request_makes_a_line_of_its_own(name: str, as_json: bool, request: pytest.FixtureRequest) -> None:  # noqa: FBT001 - a parameter of the test
    site: Site = request.getfixturevalue("guarded" if as_json else "site")

    send_forged(site, FORGERIES[name])

    site.see_work_goes_on()
    see_well_formed(site.api.log, as_json=as_json)


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_no_handler_makes_a_line_of_its_own(name: str, as_json: bool, request: pytest.FixtureRequest) -> None:  # noqa: FBT001 - a parameter of the test
    site: Site = request.getfixturevalue("guarded" if as_json else "site")
    text = FORGERIES[name][:100_000]

    assert "logged" == site.run("log", json.dumps({"text": text}))["result"]

    wait_until(lambda: "FORGED" in site.worker.log, within=WITHIN_S, what="the handler's line is there")
    see_well_formed(site.worker.log, as_json=as_json)


def test_an_errors_text_stands_in_no_line(guarded: Site) -> None:
    site = guarded
    for error in ("forged", "huge", "strange name", "exit with text"):
        site.run("raise", json.dumps({"error": error}), max_attempts=1)

    see_well_formed(site.worker.log, as_json=True)
    assert "a reason" not in site.worker.log
    assert "xxxx" not in site.worker.log


def test_a_refused_submission_is_one_line_and_repeats_nothing(site: Site) -> None:
    site.post('{"task_type": "payload-canary-1", "payload": {"a": "payload-canary-2"}, "queue": "payload-canary-3/"}')
    site.post('{"payload": "payload-canary-4')
    site.see_work_goes_on()

    wait_until(lambda: "submission_rejected" in site.api.log, within=WITHIN_S, what="the refusal is told")
    assert {"payload-canary-2", "payload-canary-4"}.isdisjoint(re.findall(r"payload-canary-\d", site.api.log))
