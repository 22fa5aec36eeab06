"""How soon an idle worker has a task, by priority, and what it costs while it has none."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.ground import PAYLOAD, SETTLE_S, Ground, client_of, pause, percentiles, run
from benchmarks.measuring import Case, Figures, Group
from benchmarks.programs import Program, wait_until_done
from benchmarks.stamps import Stamps
from dtq import AsyncClient

WARM: Final = 30
PRIORITIES: Final = tuple(range(10))
LOOKED_AT_S: Final = 5.0
SEEN_WITHIN_S: Final = 5.0
POLL_S: Final = 0.0005
BETWEEN_S: Final = (0.002, 0.010)


def warmed(ground: Ground, worker: Program, stamps: Stamps, *, queue: str = "default") -> None:
    """Have a worker run its first tasks, and leave it idle."""
    run(_one_by_one(ground.server.url, count=WARM, queue=queue))
    wait_until_done(lambda: stamps.done() >= WARM, within_s=60, program=worker)
    pause(SETTLE_S)


async def _one_by_one(url: str, *, count: int, queue: str) -> None:
    async with client_of(url) as client:
        for number in range(count):
            await client.submit("noop", {"i": number, "x": PAYLOAD}, queue=queue)


def idle_cost(ground: Ground) -> Figures:
    """Measure a worker that has nothing to do."""
    with Stamps(WARM) as stamps, ground.worker(stamps, concurrency=10) as worker:
        warmed(ground, worker, stamps)
        return _looked_at(ground, worker)


def _looked_at(ground: Ground, worker: Program) -> Figures:
    looked_at_s = max(1.0, LOOKED_AT_S * ground.scale)
    ground.server.reset()
    reads, cpu, began = ground.server.reads(), worker.cpu_s(), time.perf_counter()
    pause(looked_at_s)
    took = time.perf_counter() - began
    # each of our own looks at the counters is one read
    return {
        "commands_per_s": ground.server.commands() / took,
        "reads_per_s": max(0, ground.server.reads() - reads - 2) / took,
        "cpu_percent": (worker.cpu_s() - cpu) / took * 100,
        "memory_mib": worker.memory_mib(),
    }


def latency(ground: Ground) -> Figures:
    """Measure how soon tasks of each priority start."""
    by_priority = latencies(ground, each=ground.sized(100, least=20))
    figures = of_all(by_priority)
    for priority, values in by_priority.items():
        figures |= percentiles(values, "p50", "p99", what=f"p{priority} ")
    return figures


def of_all(by_priority: Mapping[int, Sequence[float]]) -> dict[str, float]:
    """Return how soon tasks start, whatever their priority."""
    return percentiles([value for values in by_priority.values() for value in values], "p50", "p99")


def latencies(ground: Ground, *, each: int, queue: str = "default") -> dict[int, list[float]]:
    """Measure from before a submit to the start of the handler, one task at a time, priorities in turn.

    Returns milliseconds by priority.
    """
    with (
        Stamps(WARM + each * len(PRIORITIES)) as stamps,
        ground.worker(stamps, concurrency=10, queue=queue) as worker,
    ):
        warmed(ground, worker, stamps, queue=queue)
        return run(_latencies(ground.server.url, stamps, queue=queue))


async def _latencies(url: str, stamps: Stamps, *, queue: str) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {priority: [] for priority in PRIORITIES}
    async with client_of(url) as client:
        for number in range(WARM, stamps.count):
            priority = number % len(PRIORITIES)
            found[priority].append(await _latency(client, stamps, number=number, priority=priority, queue=queue))
            low, high = BETWEEN_S
            await asyncio.sleep(low + (high - low) * (number % 7) / 6)
    return found


async def _latency(client: AsyncClient, stamps: Stamps, *, number: int, priority: int, queue: str) -> float:
    began = time.monotonic_ns()
    await client.submit("noop", {"i": number, "x": PAYLOAD}, priority=priority, queue=queue)
    ends_at = time.monotonic() + SEEN_WITHIN_S
    while not (started := stamps.time_ns(number)):
        if time.monotonic() > ends_at:
            raise TimeoutError(f"task {number} of priority {priority} did not start")
        await asyncio.sleep(POLL_S)
    return (started - began) / 1e6


GROUP: Final = Group(
    name="idle",
    about="an idle worker of concurrency 10: its cost, and how soon a task starts",
    cases=(Case(name="cost", measure=idle_cost), Case(name="latency", measure=latency)),
)
