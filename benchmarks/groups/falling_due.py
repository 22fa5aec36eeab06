"""How soon delayed tasks start when they fall due, and how many the leader promotes in a second."""

import time
from typing import Final

import msgspec

from benchmarks import handlers
from benchmarks.ground import KEYS, READY_WITHIN_S, Ground, checked, client_of, percentiles, run, submission
from benchmarks.measuring import Case, Figures, Group
from benchmarks.programs import Program, wait_until_done
from benchmarks.stamps import Stamps
from dtq import Submission
from dtq.domain.task import QueueName

LATER: Final = 100_000
LATER_S: Final = 3600.0
RATE: Final = 5000
STARTED_PER_S: Final = 1000
SECONDS: Final = 5.0
BURST: Final = 20_000
AHEAD_S: Final = 4.0
SUBMITTED_PER_S: Final = 1500
"""What is allowed for, so that all are submitted, and workers ready, before the first falls due."""
BATCH: Final = 100
PRIORITY: Final = 5
WITHIN_S: Final = 180.0


def _wait_for_later(ground: Ground) -> None:
    """Let tasks wait that are none of this hour's."""
    count = ground.sized(LATER, least=1000)
    ground.fill(submission(0, delay_seconds=LATER_S + number % 1000) for number in range(count))


def started(ground: Ground) -> Figures:
    """Measure the lateness of tasks that fall due evenly, from the time they were to run to their handler's start."""
    _wait_for_later(ground)
    with Stamps(int(_rate(ground, STARTED_PER_S) * SECONDS)) as stamps:
        begins = time.monotonic() + _ahead_s(stamps.count)
        due = _spread(stamps.count, begins=begins)
        run(_delayed(ground.server.url, due))
        with (
            ground.worker(stamps, concurrency=100, name="first") as worker,
            ground.worker(stamps, concurrency=100, name="second"),
        ):
            _check_in_time(ground, worker, workers=2, begins=begins)
            wait_until_done(lambda: stamps.done() >= stamps.count, within_s=WITHIN_S, program=worker)
        late_ms = [(begun / 1e9 - at) * 1000 for begun, at in zip(stamps.times_ns(), due, strict=True)]
    return _lateness(late_ms)


def steady(ground: Ground) -> Figures:
    """Measure the lateness of the promotion of tasks that fall due evenly; nobody works on their queue."""
    _wait_for_later(ground)
    count = int(_rate(ground, RATE) * SECONDS)
    begins = time.monotonic() + _ahead_s(count)
    due = _spread(count, begins=begins)
    promoted_ms = _promoted(ground, due, begins=begins)
    offset_ms = (time.time() - time.monotonic()) * 1000
    return _lateness([at - offset_ms - due[number] * 1000 for number, at in promoted_ms.items()])


def burst(ground: Ground) -> Figures:
    """Measure how fast the leader promotes what fell due at once; nobody works on its queue."""
    _wait_for_later(ground)
    count = ground.sized(BURST, least=1000)
    begins = time.monotonic() + _ahead_s(count)
    times_ms = sorted(_promoted(ground, [begins] * count, begins=begins).values())
    offset_ms = (time.time() - time.monotonic()) * 1000
    first, last = times_ms[0], times_ms[-1]
    return {"promoted_per_s": count / max(1, last - first) * 1000, "all_after_ms": last - offset_ms - begins * 1000}


def _rate(ground: Ground, full: int) -> float:
    return max(200.0, full * min(1.0, ground.scale * 4))


def _ahead_s(count: int) -> float:
    return AHEAD_S + count / SUBMITTED_PER_S


def _spread(count: int, *, begins: float) -> list[float]:
    return [begins + number * SECONDS / count for number in range(count)]


def _check_in_time(ground: Ground, worker: Program, *, workers: int, begins: float) -> None:
    wait_until_done(lambda: ground.known_workers() >= workers, within_s=READY_WITHIN_S, program=worker)
    if time.monotonic() > begins:
        raise RuntimeError("the workers were ready too late: submitting took longer than was allowed for")


def _promoted(ground: Ground, due: list[float], *, begins: float) -> dict[int, float]:
    """Return when each task came into its stream, in the server's milliseconds: its entry's id begins with them."""
    redis, stream = ground.server.redis, KEYS.stream(QueueName("default"), PRIORITY)
    run(_delayed(ground.server.url, due))
    with Stamps(1) as stamps, ground.worker(stamps, concurrency=10, queue="elsewhere") as worker:
        _check_in_time(ground, worker, workers=1, begins=begins)
        wait_until_done(lambda: redis.xlen(stream) >= len(due), within_s=WITHIN_S, program=worker, every_s=0.1)
    entries = redis.xrange(stream)
    return {msgspec.json.decode(fields[b"payload"])["i"]: float(name.split(b"-")[0]) for name, fields in entries}


def _lateness(late_ms: list[float]) -> dict[str, float]:
    return {"per_s": len(late_ms) / SECONDS} | percentiles(late_ms, "p50", "p99", "p99.9", what="late_")


async def _delayed(url: str, due: list[float]) -> None:
    async with client_of(url) as client:
        for first in range(0, len(due), BATCH):
            now = time.monotonic()
            batch = [
                Submission(handlers.NOOP, {"i": first + place, "x": ""}, delay_seconds=max(0.0, at - now))
                for place, at in enumerate(due[first : first + BATCH])
            ]
            checked(await client.submit_many(batch))


GROUP: Final = Group(
    name="due",
    about="delayed tasks while 100,000 wait for later: up to their promotion, or to their handler on two workers",
    cases=(
        Case(name="promotion, steady", measure=steady),
        Case(name="start, steady", measure=started),
        Case(name="promotion, all at once", measure=burst),
    ),
)
