"""dtq, and the stripped design beside it, as peers of a harness that takes further ones from this folder."""

import os
from typing import Any

from peers import ASYNC, Peer

PORT = os.environ.get("BENCH_REDIS_PORT", "6390")
URL = f"redis://127.0.0.1:{PORT}/0"

SETTINGS = {
    "DTQ_REDIS_URL": URL,
    "DTQ_MAX_QUEUE_DEPTH": "2000000",
    "DTQ_MAX_SCHEDULED": "1000000",
    "DTQ_MAX_QUEUES": "2000",
}
"""What the sizes of a benchmark need; everything else is as it comes: events, metrics, logs at INFO into a file."""

SIZES = {"noop": 20000, "sleep5": 8000}
WIDE = {"noop": "1 process, 32 async tasks, uvloop", "sleep5": ASYNC["sleep5"]}


def worker(profile: str, concurrency: int) -> list[str]:
    """Return the command of a worker."""
    return ["dtq", "worker", "run", "--tasks", "dtq_peer_app", "--concurrency", str(concurrency)]


def wide(profile: str, concurrency: int) -> list[str]:
    """Return the same with 32 slots instead of 10."""
    return worker(profile, 32 if profile == "noop" else concurrency)


def limit(profile: str, concurrency: int) -> list[str]:
    """Return the command of the stripped design."""
    return ["python", "-m", "limit", "--url", URL, "--concurrency", str(concurrency), "limit_peer_app:work"]


def wide_limit(profile: str, concurrency: int) -> list[str]:
    """Return the same with 32 slots instead of 10."""
    return limit(profile, 32 if profile == "noop" else concurrency)


def peer(name: str, app: str, command: Any, *, setting: dict[str, str] = ASYNC, **rest: Any) -> Any:
    """Return a peer in the virtualenv that has this project."""
    return Peer(name, "dtq", app, command, setting, rest.pop("sizes", SIZES), env=SETTINGS, **rest)


PEERS = [
    peer("dtq", "dtq_peer_app", worker, notes="states, results, events, metrics; logs at INFO"),
    peer(
        "dtq-sync",
        "dtq_peer_app",
        worker,
        setting={"noop": "1 process, 10 threads", "sleep5": "1 process, 100 threads"},
        sizes={"noop": 8000, "sleep5": 5000},
        variant="sync",
        notes="the same, its handler a plain function",
    ),
    peer("dtq-32", "dtq_peer_app", wide, setting=WIDE, phases=("noop",), notes="dtq with 32 slots"),
    peer("limit", "limit_peer_app", limit, notes="the design of dtq and nothing else"),
    peer("limit-32", "limit_peer_app", wide_limit, setting=WIDE, phases=("noop",), notes="limit with 32 slots"),
]
