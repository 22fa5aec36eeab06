"""Check 3: a wrong key tells nothing, whatever bytes it is made of, and is told nowhere.

That no key stands in logs, metrics and probes: tests/integration/test_metrics_and_secrets.py.
"""

import hmac
import os

import pytest

from dtq.adapters.system import UuidIds
from dtq.domain.errors import Unauthorized
from dtq.entrypoints.http.auth import KeyGuard
from tests.entrypoints.recorder import Recorder
from tests.security.site import KEY, Site, say

KEYS = {
    "empty": b"",
    "high bytes": bytes(range(0x80, 0x100)),
    "no UTF-8": b"\xff\xfe\xc0\xaf",
    "lookalike": "s\u0441cret-key".encode(),
    "latin": KEY.encode()[:-1] + b"\xfc",
    "with tabs": b"\ts3cret\tkey",
    "two kilobytes": b"k" * 2048,
    "with the right one inside": b"x" + KEY.encode(),
    "with a percent sign": b"s3cret%2dkey",
}
NO_HEADERS = {
    "NUL": KEY.encode() + b"\x00",
    "carriage return": KEY.encode() + b"\rx",
    "folded": b"s3cret\r\n -key",
}


def asked_with(key: bytes) -> bytes:
    head = b"POST /api/v1/dlq/purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
    return head + b"Connection: close\r\nX-API-Key: " + key + b"\r\n\r\n"


def test_every_wrong_key_gets_the_same_answer(guarded: Site) -> None:
    bodies = set()
    for name, key in KEYS.items():
        head, _, body = say(guarded.api, asked_with(key)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 401 "), (name, head)
        bodies.add(body)

    assert 1 == len(bodies)
    assert "request_failed" not in guarded.api.log


@pytest.mark.parametrize("name", NO_HEADERS)
def test_what_is_no_header_is_refused_before_it_is_compared(guarded: Site, name: str) -> None:
    assert say(guarded.api, asked_with(NO_HEADERS[name])).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("given", [None, b"", b"s", b"s3cret-ke", b"x3cret-key", b"s3cret-keyy", KEY.encode()])
def test_every_key_is_compared_as_a_whole_and_in_constant_time(
    monkeypatch: pytest.MonkeyPatch, given: bytes | None
) -> None:
    compared: list[tuple[bytes, bytes]] = []
    constant_time = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return constant_time(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    guard = KeyGuard(key=KEY, ids=UuidIds(), observer=Recorder())
    headers = [] if given is None else [(b"x-api-key", given)]
    scope = {"state": {}, "headers": headers, "client": ("192.0.2.7", 1)}

    if given == KEY.encode():
        guard.admit(scope, action="dlq.purge")
    else:
        with pytest.raises(Unauthorized):
            guard.admit(scope, action="dlq.purge")

    # one comparison of whole values decides: a shortcut before it, or another operator, would show a trend in time
    assert [(given or b"", os.fsencode(KEY))] == compared
