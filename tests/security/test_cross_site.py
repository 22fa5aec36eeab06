"""Check 4: a page of another origin hears no event, submits nothing, and is told by no answer that it may read it.

How origins are compared: tests/entrypoints/test_stream_origin.py.
"""

import base64

import httpx
import pytest

from tests.judged.system import System
from tests.security.site import ACTS, Site, say

FOREIGN = (
    "null",
    "http://evil.example",
    "http://{}.evil.example",
    "http://evil.example/{}",
    "http://{}@evil.example",
    "http://evil.example#{}",
    "http://evil.example?{}",
    "http://localhost.evil.example",
    "file://",
    "chrome-extension://abcdefghijklmnop",
    "http://{}0",
    "http://127.0.0.1",
    "\xff",
    "",
)
NONCE = base64.b64encode(b"0123456789abcdef").decode()
HANDSHAKE = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {NONCE}\r\n"
READABLE = ("/health", "/metrics", "/api/v1/tasks", "/api/v1/audit", "/docs", "/docs/openapi.json", "/nowhere")


def shaken(site: Site, headers: str, *, until: bytes = b"") -> bytes:
    """What a handshake with these headers is answered."""
    words = f"GET /ws/events HTTP/1.1\r\n{headers}{HANDSHAKE}\r\n"
    return say(site.api, words.encode("latin-1"), until=until)


@pytest.mark.parametrize("form", FOREIGN)
def test_a_foreign_page_is_refused_before_the_handshake_and_hears_nothing(site: Site, form: str) -> None:
    origin = form.replace("{}", site.address)

    heard = shaken(site, f"Host: {site.address}\r\nOrigin: {origin}\r\n")
    stream = site.api.http.get("/api/v1/events", headers=[(b"Origin", origin.encode("latin-1"))])

    assert heard.startswith(b"HTTP/1.1 403 ")
    assert b"ORIGIN_NOT_ALLOWED" in heard
    assert (403, "ORIGIN_NOT_ALLOWED") == (stream.status_code, stream.json()["code"])


@pytest.mark.parametrize("own_first", [True, False])
def test_an_origin_that_is_given_twice_is_no_origin(site: Site, own_first: bool) -> None:  # noqa: FBT001 - a parameter of the test
    origins = [f"Origin: http://{site.address}\r\n", "Origin: http://evil.example\r\n"]
    given = "".join(origins if own_first else reversed(origins))

    assert not shaken(site, f"Host: {site.address}\r\n{given}").startswith(b"HTTP/1.1 101 ")


def test_the_apis_own_pages_and_programs_are_let_in(site: Site) -> None:
    for origin in (f"Origin: http://{site.address}\r\n", ""):
        heard = shaken(site, f"Host: {site.address}\r\n{origin}", until=b"\r\n\r\n")
        assert heard.startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "application/jsonp",
        "",
        None,
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/tasks", "/api/v1/tasks/batch"])
def test_what_a_page_may_send_without_asking_submits_nothing(site: Site, content_type: str | None, path: str) -> None:
    # without an Origin, as old browsers send it: the type alone must be enough
    headers = {} if content_type is None else {"Content-Type": content_type}

    answer = site.api.http.post(path, content=b'{"task_type": "echo", "payload": {}}', headers=headers)

    assert (400, "INVALID_REQUEST") == (answer.status_code, answer.json()["code"])
    assert ["Content-Type"] == [fault["field"] for fault in answer.json()["errors"]]


def test_no_answer_says_that_another_origin_may_read_it(site: Site) -> None:
    asked = {
        "Origin": "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type, x-api-key",
    }
    paths = [*READABLE, *[act.format("0" * 32) for act in ACTS], "/api/v1/tasks"]
    answers = [site.api.http.request(method, path, headers=asked) for path in paths for method in ("OPTIONS", "GET")]

    shared = [header for answer in answers for header in answer.headers if header.startswith("access-control-")]
    assert [] == shared


def test_the_page_of_the_api_may_not_be_put_into_a_frame(site: Site) -> None:
    answer: httpx.Response = site.api.http.get("/docs")

    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", [*READABLE, "/ready", "/api/v1/events", "/api/v1/queues", "/docs/nowhere"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1.evil.example", "localhost.evil.example"]
)
def test_a_page_of_a_name_that_was_rebound_to_this_machine_reads_nothing(site: Site, path: str, host: str) -> None:
    # to a browser it is the API's own page: it names no origin
    name = host.format(site.api.http.base_url.port)

    answer = site.api.http.get(path, headers={"Host": name})

    assert (421, "INVALID_REQUEST") == (answer.status_code, answer.json()["code"])


def test_a_page_of_a_name_that_was_rebound_to_this_machine_hears_nothing(site: Site) -> None:
    for origin in ("", "Origin: http://evil.example\r\n"):
        assert shaken(site, f"Host: evil.example\r\n{origin}").startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "dtq.localhost"])
def test_whoever_asks_by_a_name_of_this_machine_reads(site: Site, host: str) -> None:
    name = f"{host}:{site.api.http.base_url.port}"
    for path in ("/health", "/ready", "/metrics", "/api/v1/tasks"):
        assert 200 == site.api.http.get(path, headers={"Host": name}).status_code


def test_a_named_origin_leads_here_and_a_star_is_no_name(system: System) -> None:
    api = system.api({"DTQ_WS_ALLOWED_ORIGINS": "*,https://tasks.example"})

    assert 200 == api.http.get("/api/v1/tasks", headers={"Host": "tasks.example"}).status_code
    assert 421 == api.http.get("/api/v1/tasks", headers={"Host": "other.example"}).status_code
