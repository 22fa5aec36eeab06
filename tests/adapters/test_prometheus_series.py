"""Series are exact, of whatever threads add to them."""

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Thread

from msgspec.structs import replace

from dtq.adapters.prometheus import Role
from dtq.domain.outcome import Succeeded
from dtq.domain.task import WorkerId
from tests.adapters.metering import SECOND, after, finished, metrics_of, scraped, started
from tests.factories import NOW, QUEUE, TASK_TYPE, WORKER, a_task


def test_what_threads_count_together_is_counted_once_while_it_is_scraped() -> None:
    metrics = metrics_of(Role.WORKER)
    each, threads = 2_000, 4
    change = finished(Succeeded(result="1", ran=SECOND))

    def count(_: int) -> None:
        for _ in range(each):
            metrics.observer.operation("commit", "ok")
            metrics.observer.committed(change)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            counting = [pool.submit(count, number) for number in range(threads)]
            while not all(one.done() for one in counting):
                scraped(metrics)
    finally:
        sys.setswitchinterval(interval)

    shown = scraped(metrics)
    assert {("commit", "ok"): each * threads} == shown.of("dtq_redis_operations_total")
    assert {(QUEUE, TASK_TYPE): each * threads} == shown.of("dtq_tasks_succeeded_total")
    assert {(QUEUE, TASK_TYPE): each * threads} == shown.of("dtq_task_execution_seconds_count")


def test_what_is_told_of_together_is_counted_as_if_it_were_told_of_one_by_one() -> None:
    changes = [started(a_task()), finished(Succeeded(result="1", ran=SECOND)), started(a_task())]
    metrics = metrics_of(Role.WORKER)
    metrics.observer.committed(*changes)

    assert scraped(metrics).text == after(*changes).text


def test_what_speaks_in_the_midst_of_a_count_is_counted_too() -> None:
    metrics = metrics_of(Role.WORKER)

    class Speaking(timedelta):
        def total_seconds(self) -> float:
            metrics.observer.operation("commit", "ok")
            return 1.0

    change = replace(finished(Succeeded(result="1")), ran=Speaking(seconds=1))
    counting = Thread(target=metrics.observer.committed, args=[change], daemon=True)
    counting.start()
    counting.join(timeout=10)

    assert not counting.is_alive()
    assert {("commit", "ok"): 1} == scraped(metrics).of("dtq_redis_operations_total")


def test_kinds_of_step_that_count_in_one_series_are_added_up() -> None:
    success = Succeeded(result="1", ran=SECOND)
    shown = after(finished(success), finished(success, worker_id=WorkerId("worker-00000002")))

    assert {(QUEUE, TASK_TYPE): 2} == shown.of("dtq_tasks_succeeded_total")
    assert {(QUEUE, TASK_TYPE): 2} == shown.of("dtq_task_execution_seconds_count")
    assert {("success", TASK_TYPE, WORKER): 1} == shown.of("dtq_worker_tasks_total")


def test_durations_of_an_hour_have_buckets() -> None:
    shown = after(finished(Succeeded(result="1", ran=timedelta(hours=1))))

    buckets = shown.of("dtq_task_execution_seconds_bucket")
    assert (0, 1) == (buckets["1800.0", QUEUE, TASK_TYPE], buckets["3600.0", QUEUE, TASK_TYPE])


def test_what_is_longer_than_all_buckets_is_counted_beyond_them() -> None:
    shown = after(finished(Succeeded(result="1", ran=timedelta(hours=1, milliseconds=1))))

    buckets = shown.of("dtq_task_execution_seconds_bucket")
    assert (0, 1) == (buckets["3600.0", QUEUE, TASK_TYPE], buckets["+Inf", QUEUE, TASK_TYPE])


def test_a_histogram_without_a_value_is_not_shown() -> None:
    shown = after(started(a_task(started_at=NOW, attempt=1)))

    assert {} == shown.of("dtq_task_wait_seconds_bucket")
