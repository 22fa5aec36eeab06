from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.adapters.prometheus import METRICS, Metrics, Role
from dtq.domain.delivery import FailurePolicy
from dtq.domain.lifecycle import cancel, discard, expire, promote, requeue
from dtq.domain.outcome import Succeeded, failed, timed_out
from dtq.domain.status import TaskStatus
from dtq.domain.task import WorkerId
from dtq.ports.survey import QueueFigures, Survey
from tests.adapters.metering import SECOND, after, counts, finished, metrics_of, scraped, started
from tests.factories import NOW, OPERATOR, QUEUE, TASK_TYPE, WORKER, a_change, a_task, a_token, an_event

OTHER = WorkerId("worker-00000002")
OF_TASKS = {"queue": QUEUE, "task_type": TASK_TYPE}


CONTRACT = """
dtq_tasks_submitted_total{queue,task_type} dtq_tasks_started_total{queue,task_type}
dtq_tasks_succeeded_total{queue,task_type} dtq_tasks_failed_total{queue,task_type}
dtq_tasks_retried_total{queue,task_type} dtq_tasks_dead_lettered_total{queue,task_type}
dtq_tasks_completed_total{queue,task_type,status} dtq_task_attempts_total{queue,task_type,result}
dtq_queue_depth{queue} dtq_queue_pending{queue} dtq_retry_scheduled dtq_dlq_depth dtq_workers_active
dtq_worker_inflight{worker_id} dtq_worker_tasks_total{worker_id,task_type,result}
dtq_task_duration_seconds{queue,task_type} dtq_task_execution_seconds{queue,task_type}
dtq_task_wait_seconds{queue,task_type} dtq_retry_delay_seconds{queue,task_type}
dtq_redis_operations_total{operation,result} dtq_ingest_rejected_total{queue,reason}
"""
"""Section 9, word for word."""

ADDED = "dtq_event_loop_lag_seconds"


GIVEN_UP = failed("ValueError", "no", retryable=False)


def test_names_and_labels_are_those_of_the_contract_and_one_was_added() -> None:
    names = [metric.name + (f"{{{','.join(metric.labels)}}}" if metric.labels else "") for metric in METRICS]

    assert sorted([*CONTRACT.split(), ADDED]) == sorted(names)


def test_a_submission_counts_once_whether_it_is_delayed_or_not() -> None:
    shown = after(a_change(), a_change(delay=SECOND), role=Role.API)

    assert 2 == shown.value("dtq_tasks_submitted_total", **OF_TASKS)
    assert {"dtq_tasks_submitted_total": 2} == counts(shown)


def test_a_first_start_counts_and_its_wait_is_measured() -> None:
    shown = after(started(a_task()))

    assert {"dtq_tasks_started_total": 1, "dtq_task_wait_seconds": 1} == counts(shown)
    assert 5 == shown.value("dtq_task_wait_seconds_sum", **OF_TASKS)


@pytest.mark.parametrize(
    "changes",
    [{"started_at": NOW, "attempt": 1}, {"requeued_at": NOW}, {"version": ""}],
    ids=["retry", "requeued", "rebuilt"],
)
def test_a_later_start_counts_and_is_no_wait(changes: dict[str, Any]) -> None:
    assert {"dtq_tasks_started_total": 1} == counts(after(started(a_task(**changes))))


def test_a_start_after_a_lost_worker_counts_the_attempt_that_was_lost() -> None:
    lost = a_task(status=TaskStatus.RUNNING, worker_id=OTHER)

    shown = after(started(lost))

    assert {"dtq_tasks_started_total": 1, "dtq_task_attempts_total": 1} == counts(shown)
    assert 1 == shown.value("dtq_task_attempts_total", result="error", **OF_TASKS)


def test_an_attempt_that_this_worker_lost_is_one_of_its_own() -> None:
    shown = after(started(a_task(status=TaskStatus.RUNNING)))

    assert {("error", TASK_TYPE, WORKER): 1} == shown.of("dtq_worker_tasks_total")


def test_a_success_counts_and_is_measured_from_creation_and_from_the_handlers_start() -> None:
    shown = after(finished(Succeeded(result="1", ran=3 * SECOND)))

    assert {
        "dtq_tasks_succeeded_total": 1,
        "dtq_tasks_completed_total": 1,
        "dtq_task_attempts_total": 1,
        "dtq_worker_tasks_total": 1,
        "dtq_task_duration_seconds": 1,
        "dtq_task_execution_seconds": 1,
    } == counts(shown)
    assert 9 == shown.value("dtq_task_duration_seconds_sum", **OF_TASKS)
    assert 3 == shown.value("dtq_task_execution_seconds_sum", **OF_TASKS)
    assert 1 == shown.value("dtq_tasks_completed_total", status="succeeded", **OF_TASKS)
    assert 1 == shown.value("dtq_task_attempts_total", result="success", **OF_TASKS)
    assert {("success", TASK_TYPE, WORKER): 1} == shown.of("dtq_worker_tasks_total")


def test_a_requeued_tasks_duration_begins_with_its_new_life() -> None:
    shown = after(finished(Succeeded(result="1"), requeued_at=NOW + 7 * SECOND))

    assert 2 == shown.value("dtq_task_duration_seconds_sum", **OF_TASKS)


def test_a_clock_that_was_set_back_makes_no_negative_duration() -> None:
    shown = after(finished(Succeeded(result="1"), created_at=NOW + 60 * SECOND))

    assert 0 == shown.value("dtq_task_duration_seconds_sum", **OF_TASKS)


def test_a_retry_counts_with_its_delay_and_completes_nothing() -> None:
    shown = after(finished(timed_out(30)))

    assert {
        "dtq_tasks_retried_total": 1,
        "dtq_task_attempts_total": 1,
        "dtq_worker_tasks_total": 1,
        "dtq_retry_delay_seconds": 1,
    } == counts(shown)
    assert 1 == shown.value("dtq_retry_delay_seconds_sum", **OF_TASKS)
    assert 1 == shown.value("dtq_task_attempts_total", result="timeout", **OF_TASKS)


@pytest.mark.parametrize(
    ("dead_letters", "name", "status"),
    [(True, "dtq_tasks_dead_lettered_total", "dead_lettered"), (False, "dtq_tasks_failed_total", "failed")],
)
def test_what_is_given_up_counts_by_what_becomes_of_it(dead_letters: bool, name: str, status: str) -> None:  # noqa: FBT001 - a row of the table
    shown = after(finished(GIVEN_UP, policy=FailurePolicy(dead_letters=dead_letters)))

    assert {
        name: 1,
        "dtq_tasks_completed_total": 1,
        "dtq_task_attempts_total": 1,
        "dtq_worker_tasks_total": 1,
    } == counts(shown)
    assert 1 == shown.value("dtq_tasks_completed_total", status=status, **OF_TASKS)
    assert 1 == shown.value("dtq_task_attempts_total", result="failure", **OF_TASKS)


def test_a_running_task_that_is_cancelled_counts_with_its_attempt() -> None:
    shown = after(finished(Succeeded(result="1", ran=SECOND), cancel_requested=True))

    assert {"dtq_tasks_completed_total": 1, "dtq_task_attempts_total": 1, "dtq_worker_tasks_total": 1} == counts(shown)
    assert 1 == shown.value("dtq_tasks_completed_total", status="cancelled", **OF_TASKS)
    assert 1 == shown.value("dtq_task_attempts_total", result="error", **OF_TASKS)


def test_an_expired_task_counts_as_completed() -> None:
    shown = after(expire(a_task(status=TaskStatus.PENDING), now=NOW, token=a_token()))

    assert {"dtq_tasks_completed_total": 1} == counts(shown)
    assert 1 == shown.value("dtq_tasks_completed_total", status="expired", **OF_TASKS)


def test_an_api_counts_its_own_cancellations() -> None:
    shown = after(cancel(a_task(), now=NOW, token=a_token(), by=OPERATOR), role=Role.API)

    assert {"dtq_tasks_completed_total": 1} == counts(shown)


@pytest.mark.parametrize("role", Role)
def test_steps_that_end_nothing_count_nothing(role: Role) -> None:
    dead = a_task(status=TaskStatus.DEAD_LETTERED)
    due = a_task(status=TaskStatus.RETRYING)
    running = a_task(status=TaskStatus.RUNNING)

    shown = after(
        requeue(dead, now=NOW, token=a_token(), by=OPERATOR),
        discard(dead, now=NOW, token=a_token(), by=OPERATOR),
        promote(due, now=NOW + 60 * SECOND, token=a_token()),
        cancel(running, now=NOW, token=a_token(), by=OPERATOR),
        role=role,
    )

    assert {} == counts(shown)


def test_a_process_exposes_the_metrics_of_its_role_and_no_other() -> None:
    for role in Role:
        expected = {metric.name: str(metric.kind) for metric in METRICS if role in metric.roles}

        assert expected == scraped(metrics_of(role)).kinds


def test_two_processes_metrics_can_live_side_by_side() -> None:
    first, second = metrics_of(Role.API), metrics_of(Role.API)

    first.observer.committed(a_change())

    assert ({}, 1) == (counts(scraped(second)), counts(scraped(first))["dtq_tasks_submitted_total"])


def test_an_event_of_no_task_counts_nothing() -> None:
    metrics = metrics_of(Role.WORKER)

    metrics.observer.happened(an_event())

    assert {} == counts(scraped(metrics))


def test_requests_to_redis_count_by_operation_and_result() -> None:
    for role in Role:
        metrics = metrics_of(role)

        for result in ("ok", "ok", "unknown"):
            metrics.observer.operation("commit", result)
        metrics.observer.noticed("result_dropped", task_id="1", reason="stale")

        expected = {("commit", "ok"): 2, ("commit", "unknown"): 1, ("finish", "stale"): 1}
        assert expected == scraped(metrics).of("dtq_redis_operations_total")


def a_survey(**changes: Any) -> Survey:
    figures = [QueueFigures(queue=QUEUE, depth=7, pending=2)]
    return replace(Survey(queues=figures, scheduled=4, dead_letters=3, heartbeats=[]), **changes)


def cluster(metrics: Metrics) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    names = ("dtq_queue_depth", "dtq_queue_pending", "dtq_retry_scheduled", "dtq_dlq_depth", "dtq_workers_active")
    shown = scraped(metrics)
    return {name: shown.of(name) for name in names}


def test_the_gauges_of_the_deployment_are_those_of_the_last_reading() -> None:
    metrics = metrics_of(Role.API)

    metrics.show(a_survey(), workers_active=5)

    assert {
        "dtq_queue_depth": {(QUEUE,): 7},
        "dtq_queue_pending": {(QUEUE,): 2},
        "dtq_retry_scheduled": {(): 4},
        "dtq_dlq_depth": {(): 3},
        "dtq_workers_active": {(): 5},
    } == cluster(metrics)


def test_where_nothing_could_be_read_no_old_figure_is_shown() -> None:
    metrics = metrics_of(Role.API)
    metrics.observer.committed(a_change())
    metrics.show(a_survey(), workers_active=5)

    metrics.show(None, workers_active=0)

    assert not any(cluster(metrics).values())
    assert {"dtq_tasks_submitted_total": 1} == counts(scraped(metrics))


def test_the_gauges_of_a_process_are_asked_for_at_each_scrape() -> None:
    metrics = metrics_of(Role.WORKER)
    lags, active = iter([0.5, 0.25]), iter([3, 0])
    metrics.watch_loop(lambda: next(lags))
    metrics.watch_worker(lambda: next(active))

    first, second = scraped(metrics), scraped(metrics)

    name = "dtq_event_loop_lag_seconds"
    assert ({(): 0.5}, {(): 0.25}) == (first.of(name), second.of(name))
    assert ({(WORKER,): 3}, {(WORKER,): 0}) == (first.of("dtq_worker_inflight"), second.of("dtq_worker_inflight"))
