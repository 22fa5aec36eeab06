"""Checks 7 and 13: no single request, within every limit, keeps the others waiting."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from dtq.adapters.system import SystemClock
from tests.security.site import JSON, Site

LONGEST_S = 1.0
"""How long a probe may wait; on a quiet machine it takes a few milliseconds."""

PART = 262_144 - 100
WHOLE = 16 * 1024 * 1024 - 1000


def filled(text: str, *, size: int) -> str:
    """A submission whose payload is an array of this text, as long as may be."""
    return '{"task_type": "echo", "payload": {"a": [' + (text + ",") * (size // (len(text) + 1) - 30) + text + "]}}"


def repeated(item: str) -> str:
    """A batch of this item, as large as may be."""
    return '{"tasks": [' + ",".join([item] * min(1000, WHOLE // (len(item) + 1))) + "]}"


REQUESTS: dict[str, tuple[str, Callable[[], str]]] = {
    "brackets": ("", lambda: filled("[]", size=PART)),
    "empty texts": ("", lambda: filled('""', size=PART)),
    "large floats": ("", lambda: filled("1e308", size=PART)),
    "long floats": ("", lambda: filled("0." + "1" * 400, size=PART)),
    "digits": ("", lambda: filled("7" * 4000, size=PART)),
    "small items full of brackets": ("/batch", lambda: repeated(filled("[]", size=16_000))),
    "items full of texts": ("/batch", lambda: repeated(filled('""', size=PART))),
    "items full of floats": ("/batch", lambda: repeated(filled("1e308", size=PART))),
    "an item of empty texts": ("/batch", lambda: '{"tasks": [' + filled('""', size=WHOLE - 100) + "]}"),
    "an item of brackets": ("/batch", lambda: '{"tasks": [' + filled("[]", size=WHOLE - 100) + "]}"),
    "a tower beside texts": (
        "/batch",
        lambda: '{"tasks": [' + "[" * 3000 + "]" * 3000 + "," + filled('""', size=WHOLE - 9000) + "]}",
    ),
}


def longest_probe(site: Site, work: "Future[httpx.Response]") -> float:
    """Ask for the API's health until the work is done; return the longest that this took."""
    clock, longest = SystemClock(), 0.0
    while not work.done():
        began_at = clock.monotonic()
        assert 200 == site.api.http.get("/health").status_code
        longest = max(longest, clock.monotonic() - began_at)
    return longest


@pytest.mark.parametrize("name", REQUESTS)
def test_no_request_keeps_the_others_waiting(site: Site, name: str) -> None:
    path, make = REQUESTS[name]
    body = make()

    with ThreadPoolExecutor(1) as pool:
        address = f"http://{site.address}/api/v1/tasks{path}"
        work = pool.submit(httpx.post, address, content=body, headers=JSON, timeout=60)
        longest = longest_probe(site, work)
        answer = work.result()

    assert answer.status_code < 500
    assert longest < LONGEST_S
    site.api.http.post("/api/v1/queue/default/purge")
