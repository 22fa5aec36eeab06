"""Checks 6 and 13: a client that hangs up in the middle of what it says is nobody's fault, and is not told as one."""

import socket

import pytest

from tests.security.site import Site, say
from tests.servers.process import LOOPBACK

HEAD = b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
UNFINISHED = {
    "nothing": b"",
    "half a head": HEAD,
    "half a body": HEAD + b'Content-Length: 1000\r\n\r\n{"task_type": ',
    "no body": HEAD + b"Content-Length: 1000\r\n\r\n",
    "half a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n100\r\nabc",
    "a wrong chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nxyz\r\n",
    "half a batch": HEAD.replace(b"tasks", b"tasks/batch") + b"Content-Length: 1000\r\n\r\n{",
    "a stream": b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a wait": b"GET /api/v1/tasks/%s?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"0" * 32),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_a_client_that_hangs_up_raises_no_alarm(site: Site, name: str) -> None:
    known = len(site.api.log)

    for _ in range(3):
        with socket.create_connection((LOOPBACK, site.api.http.base_url.port or 0)) as line:
            line.sendall(UNFINISHED[name])
    site.see_work_goes_on()
    site.see_work_goes_on()

    assert "request_failed" not in site.api.log[known:]
    assert "[error]" not in site.api.log[known:]


@pytest.mark.parametrize("coding", [b"xchunked", b"chunked, gzip", b"identity, chunked"])
def test_a_body_that_cannot_be_read_raises_no_alarm(site: Site, coding: bytes) -> None:
    known = len(site.api.log)

    heard = say(site.api, HEAD + b"Transfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n", until=b"}")
    site.see_work_goes_on()

    assert heard.startswith(b"HTTP/1.1 4")
    assert "request_failed" not in site.api.log[known:]
