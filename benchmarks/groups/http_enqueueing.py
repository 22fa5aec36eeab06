"""What the API takes to accept tasks, beside an empty handler of the same framework and server."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from benchmarks import http_load, reference_api
from benchmarks.ground import PAYLOAD, READY_WITHIN_S, Ground, run
from benchmarks.http_load import Load
from benchmarks.measuring import Case, Figures, Group, Ratio
from benchmarks.programs import Program, wait_until_done
from tests.servers.process import LOOPBACK, free_port

CONNECTIONS: Final = 32
BATCH: Final = 100
SUBMIT: Final = "/api/v1/tasks"


def one(text: str = PAYLOAD) -> bytes:
    """Return the body of a request that submits a task."""
    return msgspec.json.encode(_task(text))


def many(text: str = PAYLOAD, *, size: int = BATCH) -> bytes:
    """Return the body of a request that submits *size* tasks."""
    return msgspec.json.encode({"tasks": [_task(text)] * size})


def _task(text: str) -> dict[str, Any]:
    return {"task_type": "noop", "payload": {"i": 0, "x": text}}


def listening(program: Program, port: int) -> None:
    """Return when a port takes connections."""
    import socket  # noqa: PLC0415 - beside its only use

    def is_open() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, port)) == 0

    wait_until_done(is_open, within_s=READY_WITHIN_S, program=program)


def posting(*, path: str, body: bytes, connections: int, full: int, each: int = 1) -> Callable[[Ground], Figures]:
    """Measure an API; *each* is how many tasks a request has."""

    def measure(ground: Ground) -> Figures:
        count = ground.sized(full, least=4 * connections)
        return posted(ground, path=path, body=body, connections=connections, count=count, each=each)

    return measure


def posted(ground: Ground, *, path: str, body: bytes, connections: int, count: int, each: int = 1) -> Figures:
    """Start an API, send it *count* requests, and return what a task took."""
    expected = "200" if path.endswith("/batch") else "202"
    api, port = ground.api()
    load = Load(path=path, body=body, count=count, connections=connections, expected=expected)
    return _loaded(ground, api, port=port, load=load, each=each)


def reference(*, connections: int, full: int) -> Callable[[Ground], Figures]:
    """Measure the empty handler."""

    def measure(ground: Ground) -> Figures:
        port = free_port()
        program = ground.python("-m", reference_api.__name__, "--port", str(port))
        count = ground.sized(full, least=4 * connections)
        load = Load(path="/empty", body=one(), count=count, connections=connections, expected="202")
        return _loaded(ground, program, port=port, load=load, each=1)

    return measure


def _loaded(ground: Ground, program: Program, *, port: int, load: Load, each: int) -> Figures:
    with program:
        listening(program, port)
        warm = Load(path=load.path, body=load.body, count=20, connections=1, expected=load.expected)
        run(http_load.sent(warm, port=port))
        ground.server.reset()
        reads, redis, cpu = ground.server.reads(), ground.server.cpu_s(), program.cpu_s()
        per_s = run(http_load.sent(load, port=port))
        tasks = load.count // load.connections * load.connections * each
        return {
            "tasks_per_s": per_s * each,
            "requests_per_s": per_s,
            "api_us": (program.cpu_s() - cpu) / tasks * 1e6,
            "redis_us": (ground.server.cpu_s() - redis) / tasks * 1e6,
            "reads": (ground.server.reads() - reads) / tasks,
            "peak_mib": program.peak_mib(),
        }


GROUP: Final = Group(
    name="http",
    about="one API process, over connections that stay open; empty is a handler that does nothing",
    cases=(
        Case(name="POST one by one", measure=posting(path=SUBMIT, body=one(), connections=1, full=2000)),
        Case(name="empty one by one", measure=reference(connections=1, full=4000)),
        Case(name="POST, 32 connections", measure=posting(path=SUBMIT, body=one(), connections=CONNECTIONS, full=8000)),
        Case(name="empty, 32 connections", measure=reference(connections=CONNECTIONS, full=16_000)),
        Case(
            name="POST batch of 100",
            measure=posting(path=f"{SUBMIT}/batch", body=many(), connections=1, full=200, each=BATCH),
        ),
        Case(
            name="POST batch of 100, 4 connections",
            measure=posting(path=f"{SUBMIT}/batch", body=many(), connections=4, full=200, each=BATCH),
        ),
    ),
    ratios=(
        Ratio(name="http one by one x empty", case="POST one by one", to="empty one by one", figure="requests_per_s"),
        Ratio(
            name="http 32 connections x empty",
            case="POST, 32 connections",
            to="empty, 32 connections",
            figure="requests_per_s",
        ),
        Ratio(name="http batch x one by one", case="POST batch of 100", to="POST one by one", figure="tasks_per_s"),
    ),
)
