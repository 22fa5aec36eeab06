"""What several worker processes make of the same tasks on the cores that there are."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from benchmarks import handlers
from benchmarks.ground import READY_WITHIN_S, Ground, run, submission
from benchmarks.measuring import Case, Figures, Group, Ratio
from benchmarks.programs import wait_until_done
from benchmarks.stamps import Stamps
from dtq.domain.audit import Actor
from dtq.entrypoints.config import load
from dtq.entrypoints.container import build
from dtq.handlers.registry import Registry

COUNTS: Final = (1, 2, 4, 8)
WITHIN_S: Final = 300.0


def several(count: int) -> Callable[[Ground], Figures]:
    """Measure a drain by *count* worker processes together."""

    def measure(ground: Ground) -> Figures:
        with Stamps(ground.sized(20_000, least=1000)) as stamps:
            ground.fill(submission(number, task_type=handlers.NOOP) for number in range(stamps.count))
            run(_held(ground.server.url, is_held=True))
            with ExitStack() as stack:
                workers = [
                    stack.enter_context(ground.worker(stamps, concurrency=10, name=f"worker-{number}"))
                    for number in range(count)
                ]
                wait_until_done(lambda: ground.known_workers() >= count, within_s=READY_WITHIN_S, program=workers[0])
                before = ground.server.cpu_s()
                run(_held(ground.server.url, is_held=False))
                wait_until_done(lambda: stamps.done() >= stamps.count, within_s=WITHIN_S, program=workers[0])
                redis_us = (ground.server.cpu_s() - before) / stamps.count * 1e6
            times = sorted(stamps.times_ns())
            per_s = (len(times) - 1) / ((times[-1] - times[0]) / 1e9)
            return {"tasks_per_s": per_s, "redis_us": redis_us, "extra_runs": float(stamps.runs() - stamps.count)}

    return measure


async def _held(url: str, *, is_held: bool) -> None:
    """Pause the queue or resume it, so that several workers begin together."""
    settings = load(options={"DTQ_REDIS_URL": url, "DTQ_LOG_LEVEL": "WARNING"}).settings
    container = build(settings, registry=Registry.from_modules([handlers]), service="client")
    by = Actor(name="benchmarks", request_id="benchmarks")
    queues = container.queues()
    await (queues.pause if is_held else queues.resume)("default", by=by)
    await container.backend().server.close()


def _named(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


GROUP: Final = Group(
    name="workers",
    about="the same tasks drained by several worker processes of concurrency 10, which begin together",
    cases=tuple(Case(name=_named(count), measure=several(count)) for count in COUNTS),
    ratios=tuple(
        Ratio(name=f"{_named(count)} x one", case=_named(count), to=_named(1), figure="tasks_per_s")
        for count in COUNTS[1:]
    ),
)
