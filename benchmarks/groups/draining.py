"""How fast one worker runs what waits, beside benchmarks/limit.py."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import handlers, limit
from benchmarks.ground import PAYLOAD, Ground, measured_drain, run, submission
from benchmarks.measuring import Case, Figures, Group, Ratio
from benchmarks.programs import Program
from benchmarks.stamps import Stamps

WITHIN_S: Final = 300.0


def drain(*, task_type: str, concurrency: int, full: int) -> Callable[[Ground], Figures]:
    """Measure a worker of dtq."""

    def measure(ground: Ground) -> Figures:
        with Stamps(ground.sized(full)) as stamps:
            ground.fill(submission(number, task_type=task_type) for number in range(stamps.count))
            return measured_drain(
                ground,
                stamps,
                start=lambda: ground.worker(stamps, concurrency=concurrency),
                count=stamps.count,
                within_s=WITHIN_S,
            )

    return measure


def limit_drain(*, handler: str, concurrency: int, full: int) -> Callable[[Ground], Figures]:
    """Measure the stripped design."""

    def measure(ground: Ground) -> Figures:
        stamps = Stamps(ground.sized(full))

        def start() -> Program:
            name = f"{handlers.__name__}:{handler}"
            arguments = ["--url", ground.server.url, "--concurrency", str(concurrency), name]
            return ground.python(str(Path(limit.__file__)), *arguments, stamps=stamps)

        with stamps:
            run(_filled(ground.server.url, count=stamps.count))
            return measured_drain(ground, stamps, start=start, count=stamps.count, within_s=WITHIN_S)

    return measure


async def _filled(url: str, *, count: int) -> None:
    line = limit.Line(url)
    await line.open()
    for first in range(0, count, 100):
        numbers = range(first, min(first + 100, count))
        await line.create([msgspec.json.encode({"i": number, "x": PAYLOAD}).decode() for number in numbers])
        await asyncio.sleep(0)
    await line.close()


GROUP: Final = Group(
    name="drain",
    about="one worker runs tasks that wait; limit is the design without all that makes it a product",
    cases=(
        Case(name="no-op, c=10", measure=drain(task_type=handlers.NOOP, concurrency=10, full=20_000)),
        Case(name="limit, no-op, c=10", measure=limit_drain(handler="limit_noop", concurrency=10, full=20_000)),
        Case(name="no-op, c=32", measure=drain(task_type=handlers.NOOP, concurrency=32, full=20_000)),
        Case(name="limit, no-op, c=32", measure=limit_drain(handler="limit_noop", concurrency=32, full=20_000)),
        Case(name="no-op, c=100", measure=drain(task_type=handlers.NOOP, concurrency=100, full=20_000)),
        Case(name="limit, no-op, c=100", measure=limit_drain(handler="limit_noop", concurrency=100, full=20_000)),
        Case(name="no-op sync, c=10", measure=drain(task_type=handlers.NOOP_SYNC, concurrency=10, full=10_000)),
        Case(name="5 ms, c=100", measure=drain(task_type=handlers.NAP, concurrency=100, full=10_000)),
        Case(name="limit, 5 ms, c=100", measure=limit_drain(handler="limit_nap", concurrency=100, full=10_000)),
    ),
    ratios=tuple(
        Ratio(name=f"drain {what} x limit", case=what, to=f"limit, {what}", figure="tasks_per_s")
        for what in ("no-op, c=10", "no-op, c=32", "no-op, c=100", "5 ms, c=100")
    ),
)
