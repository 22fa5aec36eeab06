"""How long tasks wait while they come at a steady pace, whatever becomes of those before them (open loop)."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.ground import PAYLOAD, Ground, client_of, percentiles, run, together
from benchmarks.measuring import Case, Figures, Group
from benchmarks.programs import wait_until_done
from benchmarks.stamps import Stamps
from dtq import AsyncClient

OUTSTANDING: Final = 200
CAPACITY_TASKS: Final = 20_000
SECONDS: Final = 10.0
SHARES: Final = (0.5, 0.9)
LATE_WITHIN_S: Final = 120.0


def under_load(ground: Ground) -> Figures:
    """Measure the capacity of one worker and one submitter, then latencies at shares of it, in one round."""
    capacity = _capacity(ground)
    figures = {"capacity_per_s": capacity}
    for share in SHARES:
        ground.server.flush()
        at = f"at {share:.0%}"
        figures |= {f"{at} {name}": value for name, value in _open_loop(ground, rate=capacity * share).items()}
    return figures


def _capacity(ground: Ground) -> float:
    """Return how many tasks a second pass when there are always *OUTSTANDING* on their way."""
    with Stamps(ground.sized(CAPACITY_TASKS, least=1000)) as stamps:
        with ground.worker(stamps, concurrency=10) as worker:
            run(_saturated(ground.server.url, stamps))
            wait_until_done(lambda: stamps.done() >= stamps.count, within_s=LATE_WITHIN_S, program=worker)
        times = sorted(stamps.times_ns())
    # the ends are left out: a start of a process, and a queue that runs dry
    first, last = len(times) // 10, len(times) * 9 // 10
    return (last - first) / ((times[last] - times[first]) / 1e9)


async def _saturated(url: str, stamps: Stamps) -> None:
    numbers = iter(range(stamps.count))
    submitted = 0

    async def submitter() -> None:
        nonlocal submitted
        for number in numbers:
            while submitted - stamps.begun() > OUTSTANDING:
                await asyncio.sleep(0.002)
            submitted += 1
            await client.submit("noop", {"i": number, "x": PAYLOAD})

    async with client_of(url) as client:
        await together(submitter() for _ in range(32))


def _open_loop(ground: Ground, *, rate: float) -> Figures:
    count = max(200, int(rate * max(1.0, SECONDS * ground.scale)))
    with Stamps(count + 1) as stamps:
        with ground.worker(stamps, concurrency=10) as worker:
            due_ns, warm = run(_paced(ground.server.url, rate=rate, stamps=stamps))
            wait_until_done(lambda: stamps.done() >= stamps.count, within_s=LATE_WITHIN_S, program=worker)
        started = stamps.times_ns()
    return waits(due_ns, started[warm:]) | {"per_s": rate}


def waits(due_ns: Sequence[int], started_ns: Sequence[int]) -> dict[str, float]:
    """Return how long tasks waited from the time at which each was due to its start."""
    waited = [(begun - due) / 1e6 for begun, due in zip(started_ns, due_ns, strict=True)]
    return percentiles(waited, "p50", "p99", "p99.9")


async def _paced(url: str, *, rate: float, stamps: Stamps) -> tuple[list[int], int]:
    """Submit each task at its time, and return these times: what is late to be submitted has waited as well."""
    async with client_of(url) as client:
        await client.submit("noop", {"i": 0, "x": PAYLOAD})
        while not stamps.done():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        return await paced(client, range(1, stamps.count), rate=rate), 1


async def paced(client: AsyncClient, numbers: range, *, rate: float, **options: Any) -> list[int]:
    """Submit tasks of these numbers, so many a second, and return when each was due, in nanoseconds."""
    begins = time.monotonic_ns()
    due_ns = [begins + int(place / rate * 1e9) for place in range(len(numbers))]
    async with asyncio.TaskGroup() as group:
        for place, (number, due) in enumerate(zip(numbers, due_ns, strict=True), 1):
            ahead = (due - time.monotonic_ns()) / 1e9
            if ahead > 0:
                await asyncio.sleep(ahead)
            elif place % 16 == 0:
                await asyncio.sleep(0)
            group.create_task(client.submit("noop", {"i": number, "x": PAYLOAD}, **options))
    return due_ns


GROUP: Final = Group(
    name="load",
    about="no-op tasks at a steady pace, submitted one by one; a wait counts from the time at which a task was due",
    cases=(Case(name="open loop", measure=under_load),),
)
