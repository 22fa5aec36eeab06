"""Check 13: what is too large is refused once that is known, what is framed wrongly is none, and others are served.

Bodies at each limit: tests/judged/test_bad_input.py. Clients that do not read: tests/judged/test_event_stream.py.
Batches: tests/entrypoints/test_api_batch.py.
"""

import gzip
import resource
import socket
import zlib
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.judged.program import Program
from tests.security.site import JSON, WITHIN_S, Site, say
from tests.servers.process import LOOPBACK

GOOD = b'{"task_type": "echo", "payload": {}}'
MIB = 1024 * 1024
SPARE_BYTES = 24 * MIB
"""How much more memory an allocator may keep for next time."""

HEAD = b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SECOND = b"GET /api/v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
FRAMED_WRONGLY = {
    "length and chunks": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SECOND,
    "chunks and length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + SECOND,
    "two lengths": b"Content-Length: 4\r\nContent-Length: 40\r\n\r\nabcd" + SECOND,
    "a list of lengths": b"Content-Length: 4, 40\r\n\r\nabcd" + SECOND,
    "a length below zero": b"Content-Length: -1\r\n\r\n" + SECOND,
    "a length with a sign": b"Content-Length: +4\r\n\r\nabcd" + SECOND,
    "a hexadecimal length": b"Content-Length: 0x4\r\n\r\nabcd" + SECOND,
    "a length beyond all": b"Content-Length: 99999999999999999999999\r\n\r\n" + SECOND,
    "an encoding that nobody knows": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SECOND,
    "chunks that are not last": b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" + SECOND,
    "a space before the colon": b"Content-Length : 4\r\n\r\nabcd" + SECOND,
    "a length in a folded line": b"X: y\r\n Content-Length: 4\r\n\r\nabcd" + SECOND,
    "a chunk of no size": b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n" + SECOND,
    "a chunk below zero": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + SECOND,
    "a chunk beyond all": b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n" + SECOND,
    "a chunk longer than it says": b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n" + SECOND,
}


def memory_of(program: Program) -> int:
    pages = (Path("/proc") / str(program.pid) / "statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


@pytest.mark.parametrize("name", FRAMED_WRONGLY)
def test_what_is_framed_wrongly_is_no_request_and_hides_no_second_one(site: Site, name: str) -> None:
    heard = say(site.api, HEAD + FRAMED_WRONGLY[name])

    assert heard.startswith(b"HTTP/1.1 400 "), heard
    assert b"NOT_FOUND" not in heard


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(GOOD)), ("deflate", zlib.compress(GOOD)), ("gzip", gzip.compress(b" " * 64 * MIB))],
    ids=["gzip", "deflate", "bomb"],
)
def test_a_compressed_body_is_not_unpacked(site: Site, encoding: str, body: bytes) -> None:
    before = memory_of(site.api)

    answer = site.post(body, headers={"Content-Encoding": encoding})

    assert (400, "INVALID_TASK") == (answer.status_code, answer.json()["code"])
    assert memory_of(site.api) - before < SPARE_BYTES


@pytest.mark.parametrize("path", [b"/api/v1/tasks", b"/api/v1/tasks/batch"])
def test_a_length_beyond_the_limit_is_refused_before_anything_is_read(site: Site, path: bytes) -> None:
    head = HEAD.replace(b"/api/v1/tasks", path) + b"Content-Length: 1073741824\r\n\r\n"

    assert say(site.api, head, until=b"PAYLOAD_TOO_LARGE").startswith(b"HTTP/1.1 413 ")


def test_a_flood_without_a_length_is_cut_and_fills_no_memory(site: Site) -> None:
    before = memory_of(site.api)
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"

    with socket.create_connection((LOOPBACK, site.api.http.base_url.port or 0), timeout=WITHIN_S) as line:
        line.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 8)
        heard = line.recv(65_536)
        line.setblocking(False)  # noqa: FBT003 - the name that sockets give it
        sent = 0
        try:
            while sent < 64 * MIB:
                sent += line.send(chunk)
        except OSError:
            # nobody reads on, or the line is cut
            pass

    assert heard.startswith(b"HTTP/1.1 413 ")
    assert memory_of(site.api) - before < SPARE_BYTES
    site.see_work_goes_on()


def test_others_are_served_beside_hundreds_that_say_nothing(site: Site) -> None:
    before = memory_of(site.api)
    address = (LOOPBACK, site.api.http.base_url.port or 0)
    lines = [socket.create_connection(address, timeout=WITHIN_S) for _ in range(300)]
    try:
        for number, line in enumerate(lines):
            line.sendall((b"", b"POST", HEAD, HEAD + b"Content-Length: 20\r\n\r\n{")[number % 4])

        site.see_work_goes_on()
        assert 200 == site.api.http.get("/ready").status_code
        assert memory_of(site.api) - before < SPARE_BYTES
    finally:
        for line in lines:
            line.close()
    site.see_work_goes_on()


@pytest.mark.parametrize("size", [4097, 64 * MIB])
@pytest.mark.parametrize("kind", [bytes, str])
def test_a_frame_that_is_too_large_ends_its_socket(site: Site, size: int, kind: type) -> None:
    before = memory_of(site.api)

    with connect(f"ws://{site.address}/ws/events", max_size=None, close_timeout=1) as client:
        client.recv(WITHIN_S)
        with pytest.raises(ConnectionClosed):
            insist(client, "x" * size if kind is str else b"x" * size)

    assert memory_of(site.api) - before < SPARE_BYTES


def test_a_message_in_endless_pieces_ends_its_socket(site: Site) -> None:
    with connect(f"ws://{site.address}/ws/events", close_timeout=1) as client:
        client.recv(WITHIN_S)
        with pytest.raises(ConnectionClosed):
            insist(client, ["x" * 1000] * 64)


def insist(client: ClientConnection, message: str | bytes | list[str]) -> None:
    """Send a message, and listen until the end."""
    client.send(message)
    while client.recv(WITHIN_S):
        pass


@pytest.mark.parametrize("limit", ["1000000000", "501", "-1", "0", "1e3", "\u0663", "9" * 5000])
@pytest.mark.parametrize("path", ["tasks", "dlq", "queues", "workers", "audit", "task-types"])
def test_no_list_is_longer_than_five_hundred(site: Site, path: str, limit: str) -> None:
    answer = site.api.http.get(f"/api/v1/{path}", params={"limit": limit})

    assert (400, ["limit"]) == (answer.status_code, [fault["field"] for fault in answer.json()["errors"]])


def test_a_batch_of_more_than_may_be_is_refused_whole(site: Site) -> None:
    items = ", ".join(['{"task_type": "echo", "payload": {}}'] * 1001)

    answer = site.api.http.post("/api/v1/tasks/batch", content=f'{{"tasks": [{items}]}}', headers=JSON)

    assert (413, "PAYLOAD_TOO_LARGE") == (answer.status_code, answer.json()["code"])


def test_a_refusal_does_not_grow_with_what_it_refuses(site: Site) -> None:
    names = ", ".join(f'"{"n" * 100}{number}": 1' for number in range(2_000))

    answer = site.post("{" + names + "}")

    assert 400 == answer.status_code
    assert len(answer.content) < 16_000
