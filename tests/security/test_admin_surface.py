"""Check 2: with a key set, no twist of key, path or method leads to a destructive act; nobody chooses his own name.

Twists in one process: tests/entrypoints/test_http_auth.py. An open API says so: tests/integration/test_guarding.py.
"""

import json
from collections.abc import Iterator
from itertools import product

import httpx
import pytest

from tests.judged.footprint import dumps
from tests.judged.waiting import wait_until
from tests.security.site import ACTS, KEY, WITH_KEY, WITHIN_S, Site, say

KEYS: dict[str, list[tuple[str, str]]] = {
    "none": [],
    "empty": [("X-API-Key", "")],
    "wrong": [("X-API-Key", "wrong")],
    "prefix": [("X-API-Key", KEY[:-1])],
    "longer": [("X-API-Key", KEY + "x")],
    "upper case": [("X-API-Key", KEY.upper())],
    "quoted": [("X-API-Key", f'"{KEY}"')],
    "twice": [("X-API-Key", KEY), ("X-API-Key", KEY)],
    "listed": [("X-API-Key", f"{KEY}, {KEY}")],
    "underscores": [("X_API_Key", KEY)],
    "bearer": [("Authorization", f"Bearer {KEY}")],
    "basic": [("Authorization", "Basic OnMzY3JldC1rZXk=")],
    "cookie": [("Cookie", f"X-API-Key={KEY}; api_key={KEY}")],
    "forwarded": [("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1"), ("Forwarded", "for=127.0.0.1")],
    "overridden": [("X-Original-URL", "/health"), ("X-Rewrite-URL", "/health"), ("X-HTTP-Method-Override", "GET")],
}
QUERIES = ("", f"?X-API-Key={KEY}", f"?api_key={KEY}", f"?key={KEY}", "?x=1")
METHODS = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS")
OVERRIDES = {"X-HTTP-Method-Override": "POST", "X-HTTP-Method": "POST", "X-Method-Override": "POST"}


def paths_to(act: str) -> list[str]:
    """Ways to write a path that a router or a proxy may take for this one."""
    folder, _, name = act.rpartition("/")
    return [
        f"{act}/",
        f"/{act}",
        act.replace("/v1/", "/v1//"),
        act.replace("/v1/", "/v1/./"),
        act.replace("/v1/", "/v1/../v1/"),
        f"{folder}/%{ord(name[0]):x}{name[1:]}",
        f"{folder}%2f{name}",
        f"{folder}/{name.upper()}",
        f"{act};x=1",
        f"{act}%00",
        f"{act}%20",
        f"{act}.json",
        f"/docs/..{act}",
    ]


@pytest.fixture
def victim(guarded: Site) -> str:
    """A task that waits, in a queue that nobody serves."""
    return guarded.submitted("echo", queue="victims", delay_seconds=3600)


@pytest.fixture
def unharmed(guarded: Site, victim: str) -> Iterator[None]:
    """See that a test has changed nothing of the task, the queues and the audit trail."""
    keys = guarded.system.keys
    names = (keys.task_prefix + victim, keys.audit, keys.paused("default"), keys.dead_letters, keys.schedule)  # type: ignore[arg-type]  # a queue's name
    before = [dumps(guarded.system, match=name) for name in names]
    yield
    assert before == [dumps(guarded.system, match=name) for name in names]


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize("name", KEYS)
def test_no_other_way_to_give_the_key_opens_an_act(guarded: Site, victim: str, name: str) -> None:
    for act, query in product(ACTS, QUERIES):
        answer = guarded.api.http.post(act.format(victim) + query, headers=KEYS[name])

        assert (401, "UNAUTHORIZED") == (answer.status_code, answer.json()["code"]), (act, query)


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize("act", ACTS)
def test_no_other_way_to_write_the_path_leads_around_the_key(guarded: Site, victim: str, act: str) -> None:
    for path in paths_to(act.format(victim)):
        request = f"POST {path} HTTP/1.1\r\nHost: {guarded.address}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        status = say(guarded.api, request.encode()).split(b" ", 2)[1]

        assert status in {b"400", b"401", b"404", b"405"}, path


@pytest.mark.usefixtures("unharmed")
@pytest.mark.parametrize("act", ACTS)
def test_no_other_method_carries_an_act_out_even_with_the_key(guarded: Site, victim: str, act: str) -> None:
    for method in METHODS:
        answer = guarded.api.http.request(method, act.format(victim), headers={**WITH_KEY, **OVERRIDES})

        assert answer.status_code == (204 if method == "OPTIONS" else 405), method


@pytest.mark.usefixtures("unharmed")
def test_a_method_that_nobody_knows_is_refused(guarded: Site, victim: str) -> None:
    for method in (b"BREW", b"post", b"POSTX", b"<SCRIPT>", b""):
        path = ACTS[0].format(victim).encode()
        named = b"Host: localhost\r\nX-API-Key: " + KEY.encode()
        head = b"%s %s HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n" % (method, path, named)

        assert say(guarded.api, head).split(b" ", 2)[1] in {b"400", b"405"}, method


def test_nobody_chooses_whom_the_trail_names(guarded: Site, victim: str) -> None:
    claims = dict.fromkeys(("X-Actor", "X-User", "X-Forwarded-User", "X-Forwarded-For", "From"), "somebody-else")
    body = json.dumps({"actor": "somebody-else", "by": "somebody-else"})

    answer = guarded.api.http.post(
        f"/api/v1/tasks/{victim}/cancel", content=body, headers={**WITH_KEY, **claims, "Content-Type": "text/plain"}
    )

    assert httpx.codes.ACCEPTED == answer.status_code
    entry = guarded.api.http.get("/api/v1/audit", params={"limit": 1}).json()["entries"][0]
    assert ("task.cancel", victim, "done") == (entry["action"], entry["task_id"], entry["outcome"])
    assert entry["actor"].startswith("api-key:")
    assert "somebody-else" not in json.dumps(entry)


def test_each_refusal_is_told_in_the_log_and_none_in_the_trail(guarded: Site, victim: str) -> None:
    trail = guarded.system.redis.xlen(guarded.system.keys.audit)

    for number, act in enumerate(ACTS):
        guarded.api.http.post(act.format(victim), headers={"X-Request-ID": f"intruder-{number}"})

    wait_until(lambda: f"intruder-{len(ACTS) - 1}" in guarded.api.log, within=WITHIN_S, what="the log has them all")
    lines = [json.loads(line) for line in guarded.api.log.splitlines() if "intruder-" in line]
    assert ["refused"] * len(ACTS) == [line["event"] for line in lines]
    assert {"127.0.0.1"} == {line["peer"] for line in lines}
    assert trail == guarded.system.redis.xlen(guarded.system.keys.audit)
