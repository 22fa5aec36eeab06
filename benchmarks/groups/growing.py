"""What becomes of the figures when much is there already: tasks waiting or delayed, queues, large payloads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks import handlers
from benchmarks.ground import (
    BATCH,
    KEYS,
    PAYLOAD,
    READY_WITHIN_S,
    Ground,
    client_of,
    measured_drain,
    run,
    submission,
)
from benchmarks.groups import enqueueing, http_enqueueing, idling, loading
from benchmarks.groups.http_enqueueing import SUBMIT
from benchmarks.measuring import Case, Figures, Group, Ratio
from benchmarks.programs import Program, wait_until_done
from benchmarks.stamps import Stamps
from dtq.domain.task import QueueName

QUEUE: Final = QueueName("default")
PRIORITY: Final = 5
URGENT: Final = 9
PROBED: Final = "probed"
"""A queue beside the one that is full, whose worker is idle."""

DRAINED: Final = 5000
CONCURRENCIES: Final = (10, 32, 100)
SLEEPERS: Final = 4000
URGENT_TASKS: Final = 500
URGENT_PER_S: Final = 1000.0
SUBMITTED: Final = 2000
BATCHED: Final = 5000
POSTED: Final = 2000
PROBES: Final = 20
"""How often each priority is looked at."""

TOLD: Final = ("tasks_per_s", "redis_us", "worker_us", "commands", "peak_mib", "p50_ms", "p99_ms", "p99.9_ms")
"""What of the figures of other groups is told here."""

LATER_S: Final = 3600.0
LARGE: Final = "x" * (256 * 1024 - 200)
WITHIN_S: Final = 300.0


def nothing(ground: Ground) -> None:
    """Let nothing be there beside the tasks that wait."""


def delayed(ground: Ground) -> None:
    """Let many tasks wait for their time."""
    later = ground.sized(100_000, least=1000)
    ground.fill(submission(0, delay_seconds=LATER_S) for _ in range(later))


def known_queues(ground: Ground) -> None:
    """Let a task wait in each of many other queues."""
    ground.fill(submission(0, queue=f"queue-{number}") for number in range(ground.sized(1000, least=50)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What is there already; *share* is that of the sizes which payloads of such a size allow for."""

    name: str
    waiting: int = 10_000
    beside: Callable[[Ground], None] = nothing
    text: str = PAYLOAD
    share: float = 1.0
    batch: int = enqueueing.BATCH


class _Backlog:
    """Tasks that wait in the measured queue: as many again before each figure, numbered round and round."""

    def __init__(self, ground: Ground, condition: Condition) -> None:
        self._ground, self._condition = ground, condition
        self.drained = self.sized(DRAINED)
        self.slots = 4 * self.drained
        self.batch = BATCH * condition.batch // enqueueing.BATCH
        self._waiting = max(2 * self.drained, int(condition.waiting * condition.share * ground.scale))
        self._next = 0

    def sized(self, full: int) -> int:
        return max(50, int(full * self._condition.share * self._ground.scale))

    def depth(self) -> int:
        return int(self._ground.server.redis.xlen(KEYS.stream(QUEUE, PRIORITY)))

    def fill(self) -> None:
        missing = max(0, self._waiting - self.depth())
        numbers = range(self._next, self._next + missing)
        self._next += missing
        text = self._condition.text
        self._ground.fill((submission(number % self.slots, text=text) for number in numbers), batch=self.batch)


def measured(condition: Condition) -> Callable[[Ground], Figures]:
    """Measure a worker and submitters under a condition."""

    def measure(ground: Ground) -> Figures:
        condition.beside(ground)
        backlog = _Backlog(ground, condition)
        before = ground.server.used_bytes()
        backlog.fill()
        figures = {"bytes a waiting task": (ground.server.used_bytes() - before) / backlog.depth()}
        for concurrency in CONCURRENCIES:
            figures |= _named(f"drain c={concurrency}", _drained(ground, backlog, concurrency=concurrency))
        figures |= _named("5 ms c=100", _slept(ground, backlog, text=condition.text))
        figures |= _named("urgent", _urgent(ground, backlog))
        figures |= _named("idle", _idle(ground))
        backlog.fill()
        for what, of in _submitted(ground, backlog, condition).items():
            figures |= _named(what, of)
        return figures

    return measure


def _named(what: str, figures: Figures) -> dict[str, float]:
    return {f"{what} {name}": value for name, value in figures.items() if name in TOLD}


def _drained(ground: Ground, backlog: _Backlog, *, concurrency: int) -> Figures:
    """Measure how one worker runs the first of the tasks that wait."""
    backlog.fill()
    with Stamps(backlog.slots) as stamps:
        return _run(ground, stamps, concurrency=concurrency, count=backlog.drained)


def _slept(ground: Ground, backlog: _Backlog, *, text: str) -> Figures:
    """Measure how one worker runs sleepers that go before those who wait."""
    backlog.fill()
    with Stamps(backlog.sized(SLEEPERS), first=backlog.slots) as stamps:
        sleepers = (submission(at, task_type=handlers.NAP, priority=URGENT, text=text) for at in stamps.numbers)
        ground.fill(sleepers, batch=backlog.batch)
        return _run(ground, stamps, concurrency=100, count=stamps.count)


def _run(ground: Ground, stamps: Stamps, *, concurrency: int, count: int) -> Figures:
    def start() -> Program:
        return ground.worker(stamps, concurrency=concurrency)

    return measured_drain(ground, stamps, start=start, count=count, within_s=WITHIN_S)


def _urgent(ground: Ground, backlog: _Backlog) -> Figures:
    """Measure how long urgent tasks wait that come at a steady pace while a worker has all those others to run."""
    backlog.fill()
    with Stamps(backlog.sized(URGENT_TASKS), first=backlog.slots) as stamps:
        with ground.worker(stamps, concurrency=10) as worker:
            wait_until_done(lambda: ground.known_workers() > 0, within_s=READY_WITHIN_S, program=worker)
            due_ns = run(_come(ground.server.url, stamps.numbers))
            wait_until_done(lambda: stamps.done() >= stamps.count, within_s=WITHIN_S, program=worker)
        return loading.waits(due_ns, stamps.times_ns())


async def _come(url: str, numbers: range) -> list[int]:
    async with client_of(url) as client:
        return await loading.paced(client, numbers, rate=URGENT_PER_S, priority=URGENT)


def _idle(ground: Ground) -> Figures:
    """Measure how soon a task starts whose queue is empty, at a worker that is idle."""
    return idling.of_all(idling.latencies(ground, each=ground.sized(PROBES, least=5), queue=PROBED))


def _submitted(ground: Ground, backlog: _Backlog, condition: Condition) -> Mapping[str, Figures]:
    """Measure each way to submit."""
    text, size = condition.text, condition.batch
    count, batches = backlog.sized(SUBMITTED), max(1, backlog.sized(BATCHED) // size)
    one, many = http_enqueueing.one(text), http_enqueueing.many(text, size=size)
    ways = {
        "submit": (partial(enqueueing.one_by_one, text=text), count),
        f"submit {enqueueing.WIDTH}": (partial(enqueueing.concurrently, text=text), count),
        "submit batch": (partial(enqueueing.in_batches, text=text, size=size), batches * size),
    }
    requests = {
        "http": (SUBMIT, one, 1, backlog.sized(POSTED), 1),
        f"http {http_enqueueing.CONNECTIONS}": (SUBMIT, one, http_enqueueing.CONNECTIONS, backlog.sized(POSTED), 1),
        "http batch": (f"{SUBMIT}/batch", many, 1, batches, size),
    }
    return {what: run(enqueueing.enqueued(ground, way, count=count)) for what, (way, count) in ways.items()} | {
        what: http_enqueueing.posted(ground, path=path, body=body, connections=connections, count=count, each=each)
        for what, (path, body, connections, count, each) in requests.items()
    }


LEAST: Final = Condition(name="10,000 waiting")
CONDITIONS: Final = (
    LEAST,
    Condition(name="100,000 waiting", waiting=100_000),
    Condition(name="1,000,000 waiting", waiting=1_000_000),
    Condition(name="100,000 delayed", beside=delayed),
    Condition(name="1,000 queues", beside=known_queues),
    Condition(name="256 KB payloads", text=LARGE, share=0.1, batch=20),
)
COMPARED: Final = {
    "drain": "drain c=10",
    "drain at 32": "drain c=32",
    "drain at 100": "drain c=100",
    "5 ms": "5 ms c=100",
    "submit": "submit",
    "submit by 32": "submit 32",
    "batches": "submit batch",
    "http": "http",
    "http by 32": "http 32",
    "http batches": "http batch",
}

GROUP: Final = Group(
    name="growth",
    about="a worker and submitters while much is there already",
    cases=tuple(Case(name=condition.name, measure=measured(condition)) for condition in CONDITIONS),
    ratios=tuple(
        Ratio(
            name=f"{what} with {condition.name} x {LEAST.name}",
            case=condition.name,
            to=LEAST.name,
            figure=f"{figure} tasks_per_s",
        )
        for condition in CONDITIONS
        if condition is not LEAST and condition.text is PAYLOAD
        for what, figure in COMPARED.items()
    ),
)
