"""Check 10: a header that decides something is given once; of two, none is believed."""

import pytest

from tests.security.site import Site, say

BODY = b'{"task_type": "echo", "payload": {}}'


def asked(headers: bytes, *, request: bytes = b"POST /api/v1/tasks") -> bytes:
    length = str(len(BODY)).encode()
    return request + b" HTTP/1.1\r\nConnection: close\r\nContent-Length: " + length + b"\r\n" + headers + b"\r\n" + BODY


HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
TWICE = {
    "keys": HOST + JSON + b"Idempotency-Key: one\r\nIdempotency-Key: two\r\n",
    "the same key": HOST + JSON + b"Idempotency-Key: one\r\nIdempotency-Key: one\r\n",
    "types": HOST + JSON + b"Content-Type: text/plain\r\n",
    "types in the other order": HOST + b"Content-Type: text/plain\r\n" + JSON,
    "hosts": HOST + b"Host: y\r\n" + JSON,
    "no host": JSON,
}


@pytest.mark.parametrize("name", TWICE)
def test_a_header_that_decides_is_given_once(site: Site, name: str) -> None:
    heard = say(site.api, asked(TWICE[name]))

    assert heard.startswith(b"HTTP/1.1 400 "), heard


def test_once_it_is_believed(site: Site) -> None:
    assert say(site.api, asked(HOST + JSON + b"Idempotency-Key: once-only\r\n")).startswith(b"HTTP/1.1 202 ")
