"""Runs `tests.performance.counting` in a process of its own, on a server that nobody else uses."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from redis import Redis

from tests.performance import counting
from tests.servers import RedisServer

ATTEMPTS = 8
ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 100


def least(what: str, *, server: RedisServer, enough: Callable[[Mapping[str, float]], bool]) -> Mapping[str, float]:
    """The least of each count of a few runs, or of fewer where that is enough."""
    found = counted(what, server=server)
    for _ in range(ATTEMPTS - 1):
        if enough(found):
            break
        again = counted(what, server=server)
        found = {name: min(count, again[name]) for name, count in found.items()}
    return found


def counted(what: str, *, server: RedisServer) -> Mapping[str, float]:
    """What one of it takes. Raises RuntimeError where the counting itself fails."""
    with Redis.from_url(server.url) as redis:
        redis.flushall()
    own = {name: text for name, text in os.environ.items() if not name.startswith("DTQ_")}
    done = subprocess.run(
        [sys.executable, "-m", counting.__name__, what, server.url],
        cwd=ROOT,
        env=own,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    counts: dict[str, float] = json.loads(done.stdout)
    return counts
