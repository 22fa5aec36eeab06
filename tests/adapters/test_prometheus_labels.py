"""Label values are of a bounded number, and their text forges no line, whatever strangers send."""

import pytest
from msgspec.structs import replace

from dtq.adapters.prometheus import CollectorRegistry, Metrics, Role
from dtq.adapters.prometheus.labels import INVALID, OTHER, UNKNOWN
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.lifecycle import cancel
from dtq.domain.task import QueueName
from dtq.ports.survey import QueueFigures, Survey
from tests.factories import NOW, OPERATOR, TASK_TYPE, WORKER, a_change, a_task, a_token
from tests.scraped import Scraped

MAX_QUEUES = 5
HOSTILE = (
    "",
    'a"} 1\ndtq_forged_total 1\n',
    "\\",
    "\n# TYPE dtq_forged gauge",
    "x" * 100_000,
    "\x00\x1b[31m",
    "\u2028",
    "ключ",
    "../../etc",
    "{}",
)


def metrics_of(role: Role) -> Metrics:
    registry = CollectorRegistry()
    return Metrics(registry, role=role, task_types={TASK_TYPE}, max_queues=MAX_QUEUES, worker_id=WORKER)


def scraped(metrics: Metrics) -> Scraped:
    return Scraped(metrics.text().decode())


def reject(metrics: Metrics, queue: str | None, *, reason: str = "invalid_task") -> None:
    metrics.observer.noticed("submission_rejected", queue=queue, reason=reason)


@pytest.mark.parametrize("name", [*HOSTILE, "unregistered", None], ids=ascii)
def test_what_a_refused_submission_calls_its_queue_is_no_label_unless_it_is_registered(name: str | None) -> None:
    metrics = metrics_of(Role.API)

    reject(metrics, name)

    assert {(INVALID, "invalid_task"): 1} == scraped(metrics).of("dtq_ingest_rejected_total")


@pytest.mark.parametrize("reason", ["queue_full", "idempotency"])
def test_a_refusal_that_only_a_registered_queue_can_give_proves_the_name(reason: str) -> None:
    metrics = metrics_of(Role.API)

    reject(metrics, "mail", reason=reason)
    reject(metrics, "mail")

    assert {("mail", reason): 1, ("mail", "invalid_task"): 1} == scraped(metrics).of("dtq_ingest_rejected_total")


@pytest.mark.parametrize("reason", ["schedule_full", "too_many_queues", "unknown_task_type", "broker_unavailable"])
def test_any_other_refusal_proves_nothing(reason: str) -> None:
    metrics = metrics_of(Role.API)

    reject(metrics, "mail", reason=reason)

    assert {(INVALID, reason): 1} == scraped(metrics).of("dtq_ingest_rejected_total")


def test_queues_that_a_reading_found_are_known_by_name() -> None:
    metrics = metrics_of(Role.API)
    figures = [QueueFigures(queue=QueueName("mail"), depth=0, pending=0)]

    metrics.show(Survey(queues=figures, scheduled=0, dead_letters=0, heartbeats=[]), workers_active=0)
    reject(metrics, "mail")
    reject(metrics, DEFAULT_QUEUE)

    assert {"mail", DEFAULT_QUEUE} == scraped(metrics).values_of("queue")


def test_queues_beyond_the_limit_share_one_label() -> None:
    metrics = metrics_of(Role.API)

    for number in range(100):
        metrics.observer.committed(a_change(queue=QueueName(f"q{number}")))
        reject(metrics, f"q{number}", reason="queue_full")

    shown = scraped(metrics)
    known = {DEFAULT_QUEUE, *(f"q{number}" for number in range(MAX_QUEUES - 1))}
    assert known - {DEFAULT_QUEUE} | {OTHER} == {queue for queue, _ in shown.of("dtq_tasks_submitted_total")}
    assert 100 == sum(shown.of("dtq_tasks_submitted_total").values())
    assert known - {DEFAULT_QUEUE} | {INVALID} == {queue for queue, _ in shown.of("dtq_ingest_rejected_total")}


@pytest.mark.parametrize("task_type", [*HOSTILE, "unregistered"], ids=ascii)
@pytest.mark.parametrize("role", Role)
def test_a_task_type_without_a_handler_is_unknown(role: Role, task_type: str) -> None:
    metrics = metrics_of(role)
    task = replace(a_task(), task_type=task_type)
    change = cancel(task, now=NOW, token=a_token(), by=OPERATOR)

    metrics.observer.committed(change)  # type: ignore[arg-type]  # a waiting task can be cancelled

    assert {UNKNOWN} == scraped(metrics).values_of("task_type")


def test_a_queue_that_a_stranger_wrote_into_the_registry_forges_nothing() -> None:
    metrics = metrics_of(Role.API)
    figures = [QueueFigures(queue=QueueName(name), depth=1, pending=0) for name in HOSTILE]

    metrics.show(Survey(queues=figures, scheduled=0, dead_letters=0, heartbeats=[]), workers_active=0)

    shown = scraped(metrics)
    assert set(HOSTILE) == {queue for (queue,) in shown.of("dtq_queue_depth")}
    assert not [name for name in shown.kinds if "forged" in name]


def test_a_hundred_thousand_hostile_observations_leave_a_bounded_number_of_series() -> None:
    metrics = metrics_of(Role.API)
    reasons = ("invalid_task", "unknown_task_type", "queue_full", "idempotency", "too_many_queues")

    for number in range(100_000):
        reject(metrics, f"q{number}", reason=reasons[number % len(reasons)])
    for number in range(1_000):
        metrics.observer.committed(a_change(queue=QueueName(f"s{number}"), task_type=f"t{number}"))

    bound_of_rejected = (MAX_QUEUES + 1) * len(reasons)
    bound_of_submitted = (MAX_QUEUES + 1) * 2
    assert scraped(metrics).series <= bound_of_rejected + bound_of_submitted + 1
