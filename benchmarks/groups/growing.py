"""What becomes of the figures when much is there already: tasks waiting or delayed, queues, large payloads, workers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from benchmarks import handlers
from benchmarks.ground import BATCH, READY_WITHIN_S, Ground, measured_drain, run, submission
from benchmarks.groups.enqueueing import enqueued, one_by_one
from benchmarks.measuring import Case, Figures, Group, Ratio
from benchmarks.programs import wait_until_done
from benchmarks.stamps import Stamps
from dtq import Submission
from dtq.domain.audit import Actor
from dtq.entrypoints.config import load
from dtq.entrypoints.container import build
from dtq.handlers.registry import Registry

DRAINED: Final = 5000
SUBMITTED: Final = 2000
LATER_S: Final = 3600.0
LARGE: Final = "x" * (256 * 1024 - 200)
COUNTS: Final = (1, 2, 4, 8)
WITHIN_S: Final = 300.0


def waiting(full: int) -> Callable[[Ground], Figures]:
    """Measure submits, and the first tasks of a drain, with *full* tasks in the queue."""

    def measure(ground: Ground) -> Figures:
        drained = ground.sized(DRAINED, least=500)
        count = max(2 * drained, int(full * ground.scale))
        # tasks beyond those that are looked at share the last slot
        return _with(ground, (submission(min(number, drained)) for number in range(count)), drained=drained)

    return measure


def delayed(ground: Ground) -> Figures:
    """Measure the same with many tasks waiting for their time."""
    drained, later = ground.sized(DRAINED, least=500), ground.sized(100_000, least=1000)
    ground.fill(submission(0, delay_seconds=LATER_S) for _ in range(later))
    return _with(ground, (submission(min(number, drained)) for number in range(2 * drained)), drained=drained)


def known_queues(ground: Ground) -> Figures:
    """Measure the same with a task in each of many other queues."""
    drained = ground.sized(DRAINED, least=500)
    ground.fill(submission(0, queue=f"queue-{number}") for number in range(ground.sized(1000, least=50)))
    return _with(ground, (submission(min(number, drained)) for number in range(2 * drained)), drained=drained)


def large_payloads(ground: Ground) -> Figures:
    """Measure the same with payloads as large as they may be."""
    drained = ground.sized(500, least=50)
    submissions = (submission(min(number, drained), text=LARGE) for number in range(2 * drained))
    return _with(ground, submissions, drained=drained, submitted=0, batch=50)


def _with(
    ground: Ground, submissions: Iterator[Submission], *, drained: int, submitted: int = SUBMITTED, batch: int = BATCH
) -> dict[str, float]:
    ground.fill(submissions, batch=batch)
    stamps = Stamps(drained + 1)
    figures: dict[str, float] = {}
    try:
        if submitted:
            of_submits = run(enqueued(ground, one_by_one, count=ground.sized(submitted)))
            figures = {f"submit {name}": value for name, value in of_submits.items()}
        drain = measured_drain(
            ground,
            stamps,
            start=lambda: ground.worker(stamps, concurrency=10),
            count=drained,
            within_s=WITHIN_S,
        )
    finally:
        stamps.close()
    return {f"drain {name}": value for name, value in drain.items() if name != "extra_runs"} | figures


def several(count: int) -> Callable[[Ground], Figures]:
    """Measure a drain by *count* worker processes together."""

    def measure(ground: Ground) -> Figures:
        stamps = Stamps(ground.sized(20_000, least=1000))
        try:
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
        finally:
            stamps.close()

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
    name="growth",
    about="a worker of concurrency 10 and a submitter while much is there already",
    cases=(
        Case(name="10,000 waiting", measure=waiting(10_000)),
        Case(name="100,000 waiting", measure=waiting(100_000), rounds=3),
        Case(name="1,000,000 waiting", measure=waiting(1_000_000), rounds=3),
        Case(name="100,000 delayed", measure=delayed, rounds=3),
        Case(name="1,000 queues", measure=known_queues, rounds=3),
        Case(name="256 KB payloads", measure=large_payloads, rounds=3),
    ),
    ratios=tuple(
        Ratio(name=f"{what} with {case} x 10,000 waiting", case=case, to="10,000 waiting", figure=f"{what} tasks_per_s")
        for case in ("100,000 waiting", "1,000,000 waiting", "100,000 delayed", "1,000 queues")
        for what in ("drain", "submit")
    ),
)

WORKERS: Final = Group(
    name="workers",
    about="the same tasks drained by several worker processes of concurrency 10, which begin together",
    cases=tuple(Case(name=_named(count), measure=several(count), rounds=3) for count in COUNTS),
    ratios=tuple(
        Ratio(name=f"{_named(count)} x one", case=_named(count), to=_named(1), figure="tasks_per_s")
        for count in COUNTS[1:]
    ),
)
