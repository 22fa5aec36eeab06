"""How soon delayed tasks start when they fall due, and how many the leader promotes in a second."""

import time
from typing import Final

from benchmarks import handlers
from benchmarks.ground import KEYS, READY_WITHIN_S, Ground, client_of, percentile, run, submission
from benchmarks.measuring import Case, Figures, Group
from benchmarks.programs import wait_until_done
from benchmarks.stamps import Stamps
from dtq import Submission

LATER: Final = 100_000
LATER_S: Final = 3600.0
RATE: Final = 5000
SECONDS: Final = 5.0
BURST: Final = 20_000
AHEAD_S: Final = 4.0
SUBMITTED_PER_S: Final = 1500
"""What is allowed for, so that all are submitted, and workers ready, before the first falls due."""
BATCH: Final = 100
POLL_S: Final = 0.005


def _wait_for_later(ground: Ground) -> None:
    """Let tasks wait that are none of this hour's."""
    count = ground.sized(LATER, least=1000)
    ground.fill(submission(0, delay_seconds=LATER_S + number % 1000) for number in range(count))


def steady(ground: Ground) -> Figures:
    """Measure the lateness of tasks that fall due evenly, from the time they were to run to their handler's start."""
    _wait_for_later(ground)
    rate = max(200.0, RATE * min(1.0, ground.scale * 4))
    stamps = Stamps(int(rate * SECONDS))
    try:
        ahead_s = AHEAD_S + stamps.count / SUBMITTED_PER_S
        begins = time.monotonic() + ahead_s
        due = [begins + number / rate for number in range(stamps.count)]
        run(_delayed(ground.server.url, due))
        with (
            ground.worker(stamps, concurrency=100, name="first") as worker,
            ground.worker(stamps, concurrency=100, name="second"),
        ):
            wait_until_done(lambda: ground.known_workers() >= 2, within_s=READY_WITHIN_S, program=worker)  # noqa: PLR2004 - these two
            is_late = time.monotonic() > begins
            wait_until_done(lambda: stamps.done() >= stamps.count, within_s=ahead_s + 120, program=worker)
        if is_late:
            raise RuntimeError("the workers were started too late: submitting took longer than was allowed for")
        late = [(begun / 1e9 - at) * 1000 for begun, at in zip(stamps.times_ns(), due, strict=True)]
    finally:
        stamps.close()
    shares = {"late_p50_ms": 0.5, "late_p99_ms": 0.99, "late_p99.9_ms": 0.999}
    return {"per_s": rate} | {name: percentile(late, share) for name, share in shares.items()}


async def _delayed(url: str, due: list[float]) -> None:
    async with client_of(url) as client:
        for first in range(0, len(due), BATCH):
            now = time.monotonic()
            batch = [
                Submission(handlers.NOOP, {"i": first + place, "x": ""}, delay_seconds=max(0.0, at - now))
                for place, at in enumerate(due[first : first + BATCH])
            ]
            for answer in await client.submit_many(batch):
                if isinstance(answer, Exception):
                    raise answer


def burst(ground: Ground) -> Figures:
    """Measure how fast the leader takes what fell due at once from the schedule; nobody works on its queue."""
    _wait_for_later(ground)
    count = ground.sized(BURST, least=1000)
    ahead_s = AHEAD_S + count / SUBMITTED_PER_S
    due = time.monotonic() + ahead_s
    later = ground.server.redis.zcard(KEYS.schedule)
    run(_delayed(ground.server.url, [due] * count))
    stamps = Stamps(1)
    seen: list[tuple[float, int]] = []
    try:
        with ground.worker(stamps, concurrency=10, queue="elsewhere") as worker:

            def is_promoted() -> bool:
                left = ground.server.redis.zcard(KEYS.schedule) - later
                seen.append((time.monotonic(), count - left))
                return bool(left <= 0)

            wait_until_done(is_promoted, within_s=ahead_s + 120, program=worker, every_s=POLL_S)
    finally:
        stamps.close()
    (first, begun), (last, ended) = _window(seen, count=count)
    return {"promoted_per_s": (ended - begun) / (last - first), "all_after_ms": (seen[-1][0] - due) * 1000}


def _window(seen: list[tuple[float, int]], *, count: int) -> tuple[tuple[float, int], tuple[float, int]]:
    """Return the last look before anything went and the first one after which nothing was left."""
    begun = [look for look in seen if look[1] <= 0] or seen[:1]
    return begun[-1], next(look for look in seen if look[1] >= count)


GROUP: Final = Group(
    name="due",
    about="delayed tasks while 100,000 wait for later; lateness is up to the start of the handler, by two workers",
    cases=(Case(name="steady", measure=steady), Case(name="all at once", measure=burst)),
)
