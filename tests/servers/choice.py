"""Which server a test run uses: DTQ_TEST_REDIS_URL, DTQ_TEST_SERVER, or the first one found.

DTQ_TEST_SERVER is a kind of tests/servers/kinds.py, `memory` (no server at all) or `auto`, which is the default.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tests.servers.engine import AppendFsync
from tests.servers.external import ExternalEngine
from tests.servers.kinds import KINDS, Kind, MissingServerError
from tests.servers.server import RedisServer

AUTO_ORDER: tuple[Kind, ...] = ("container", "path", "redis82", "valkey91")


class NoServerError(Exception):
    """No real server can be had: the tests that need one fail with this, and say what to install."""


def adapters_under_test() -> tuple[Literal["memory", "redis"], ...]:
    """The adapters that a parameterized suite runs on, as DTQ_TEST_SERVER has it."""
    match _wish():
        case "memory":
            return ("memory",)
        case "auto":
            return ("memory", "redis")
        case _:
            return ("redis",)


def start_chosen() -> RedisServer:
    """The server that a whole run may share; tests keep apart by key prefix and never stop it."""
    url = os.environ.get("DTQ_TEST_REDIS_URL")
    if url:
        return RedisServer(ExternalEngine(url), kind="url")
    return start_own()


def start_own(
    *,
    data_dir: Path | None = None,
    appendfsync: AppendFsync = "no",
    port: int = 0,
    arguments: Sequence[str] = (),
) -> RedisServer:
    """A server for one test alone, of the kind of this run: it may be killed, paused and filled."""
    reasons = []
    for kind in _candidates():
        try:
            return RedisServer.start(kind, data_dir=data_dir, appendfsync=appendfsync, port=port, arguments=arguments)
        except MissingServerError as error:
            reasons.append(str(error))
    raise NoServerError("\n  ".join(["tests need a real Redis or Valkey, and none was found:", *reasons]))


def _candidates() -> tuple[Kind, ...]:
    wish = _wish()
    if wish == "auto":
        return AUTO_ORDER
    for kind in KINDS:
        if kind == wish:
            return (kind,)
    allowed = ", ".join(["auto", "memory", *KINDS])
    raise NoServerError(f"a test needs a server, but DTQ_TEST_SERVER is {wish!r}; it may be one of {allowed}")


def _wish() -> str:
    return os.environ.get("DTQ_TEST_SERVER") or "auto"
