"""What a program pays to submit by the client, straight to the broker."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from benchmarks.ground import PAYLOAD, Ground, checked, client_of, run, submission, together
from benchmarks.measuring import Case, Figures, Group, Ratio
from dtq import AsyncClient

WIDTH: Final = 32
BATCH: Final = 100
WARM: Final = 20

Way = Callable[[AsyncClient, int], Awaitable[None]]


async def one_by_one(client: AsyncClient, count: int, *, text: str = PAYLOAD) -> None:
    """Submit each task when the one before is accepted."""
    for number in range(count):
        await client.submit("noop", {"i": number, "x": text})


async def concurrently(client: AsyncClient, count: int, *, text: str = PAYLOAD) -> None:
    """Submit from as many coroutines as a busy server has requests."""

    async def some(first: int) -> None:
        for number in range(first, count, WIDTH):
            await client.submit("noop", {"i": number, "x": text})

    await together(some(first) for first in range(WIDTH))


async def in_batches(client: AsyncClient, count: int, *, text: str = PAYLOAD, size: int = BATCH) -> None:
    """Submit *size* at a time."""
    for first in range(0, count, size):
        batch = [submission(number, text=text) for number in range(first, min(first + size, count))]
        checked(await client.submit_many(batch))


def enqueue(way: Way, *, full: int) -> Callable[[Ground], Figures]:
    """Measure one way to submit, in this process."""

    def measure(ground: Ground) -> Figures:
        return run(enqueued(ground, way, count=ground.sized(full)))

    return measure


async def enqueued(ground: Ground, way: Way, *, count: int) -> Figures:
    """Submit *count* tasks and return what each took."""
    server = ground.server
    async with client_of(server.url) as client:
        await way(client, WARM)
        server.reset()
        reads, redis = server.reads(), server.cpu_s()
        began, cpu = time.perf_counter(), time.process_time()
        await way(client, count)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        return {
            "tasks_per_s": count / took,
            "client_us": cpu / count * 1e6,
            "redis_us": (server.cpu_s() - redis) / count * 1e6,
            "commands": server.commands() / count,
            "reads": (server.reads() - reads) / count,
        }


GROUP: Final = Group(
    name="enqueue",
    about="one process submits by AsyncClient, straight to the broker",
    cases=(
        Case(name="one by one", measure=enqueue(one_by_one, full=5000)),
        Case(name=f"{WIDTH} coroutines", measure=enqueue(concurrently, full=10_000)),
        Case(name=f"batches of {BATCH}", measure=enqueue(in_batches, full=20_000)),
    ),
    ratios=(
        Ratio(name="enqueue: batches x one by one", case=f"batches of {BATCH}", to="one by one", figure="tasks_per_s"),
    ),
)
