"""The pages of a worker, asked by clients of every kind."""

import contextlib
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import httpx
import pytest

from dtq.entrypoints.worker_http import HEALTH, MAX_CLIENTS, MAX_HEAD_BYTES, Page, WorkerHttp, listen

LOOPBACK: Final = "127.0.0.1"
WITHIN_S: Final = 10.0
TEXT: Final = b"dtq_tasks_started_total 1\n"

Connect = Callable[[], socket.socket]


@pytest.fixture(scope="module")
def address() -> tuple[str, int]:
    listener = listen(0, host=LOOPBACK)
    metrics = Page(content_type="text/plain; version=0.0.4", text=lambda: TEXT)
    WorkerHttp(listener, pages={"/metrics": metrics, "/health": HEALTH}).start()
    host, port = listener.getsockname()
    return host, port


@pytest.fixture
def http(address: tuple[str, int]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{address[0]}:{address[1]}", timeout=WITHIN_S) as client:
        yield client


@pytest.fixture
def connect(address: tuple[str, int]) -> Iterator[Connect]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(socket.create_connection(address, timeout=WITHIN_S))


def said_to(client: socket.socket) -> bytes:
    """Everything that a client is told until the server ends the connection."""
    said = b""
    try:
        while part := client.recv(4096):
            said += part
    except ConnectionError:
        pass
    return said


def test_metrics_and_health_are_served(http: httpx.Client) -> None:
    metrics, health = http.get("/metrics"), http.get("/health?probe=1")

    assert (200, TEXT) == (metrics.status_code, metrics.content)
    assert "text/plain; version=0.0.4" == metrics.headers["content-type"]
    assert (200, {"status": "ok"}) == (health.status_code, health.json())


def test_a_look_at_the_head_gets_no_body(http: httpx.Client) -> None:
    answer = http.head("/metrics")

    assert (200, b"", str(len(TEXT))) == (answer.status_code, answer.content, answer.headers["content-length"])


@pytest.mark.parametrize("path", ["/", "/metrics/", "/ready", "/%2fmetrics", "//metrics", "/<script>"])
def test_any_other_page_is_not_there_and_is_not_repeated(http: httpx.Client, path: str) -> None:
    answer = http.get(path)

    assert (404, "Not Found\n") == (answer.status_code, answer.text)
    assert "nosniff" == answer.headers["x-content-type-options"]


def test_other_methods_are_refused(http: httpx.Client) -> None:
    answer = http.post("/health", content=b"x" * 100)

    assert (405, "GET, HEAD") == (answer.status_code, answer.headers["allow"])


@pytest.mark.parametrize(
    "request_bytes",
    [b"\r\n\r\n", b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET /nowhere HTTP/9\r\nHost: \x00\r\n\r\n"],
)
def test_nonsense_gets_a_refusal(connect: Connect, http: httpx.Client, request_bytes: bytes) -> None:
    client = connect()
    client.sendall(request_bytes)

    assert said_to(client).startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert 200 == http.get("/health").status_code


def test_a_head_without_end_is_cut_off(connect: Connect, http: httpx.Client) -> None:
    client = connect()
    try:
        client.sendall(b"GET /health HTTP/1.1\r\nX: " + b"x" * (4 * MAX_HEAD_BYTES))
        said = said_to(client)
    except ConnectionError:
        said = b""

    assert b"" == said
    assert 200 == http.get("/health").status_code


def test_clients_that_say_nothing_hold_up_nobody_and_the_first_of_too_many_gives_way(
    connect: Connect, http: httpx.Client
) -> None:
    silent = [connect() for _ in range(MAX_CLIENTS + 2)]

    assert 200 == http.get("/health").status_code

    with contextlib.suppress(ConnectionError):
        assert b"" == said_to(silent[0])
    silent[-1].sendall(b"GET /health HTTP/1.1\r\n\r\n")
    assert said_to(silent[-1]).startswith(b"HTTP/1.1 200")


def test_a_port_that_is_taken_is_said_to_be(address: tuple[str, int]) -> None:
    with pytest.raises(OSError, match="in use"):
        listen(address[1], host=LOOPBACK)
