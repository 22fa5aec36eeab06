from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.task import QueueName
from dtq.domain.workers import Heartbeat, WorkerStatus, expires_in, liveness, self_reported
from tests.domain.factories import BEGIN, NOW, WORKER

INTERVAL = timedelta(seconds=5)
INSTANT = timedelta(milliseconds=1)
LIVING = [status for status in WorkerStatus if status not in {WorkerStatus.STOPPED, WorkerStatus.STALE}]


def a_heartbeat(*, age: timedelta = timedelta(), status: WorkerStatus = WorkerStatus.READY) -> Heartbeat:
    return Heartbeat(
        worker_id=WORKER,
        hostname="host",
        started_at=BEGIN,
        last_heartbeat=NOW - age,
        queue=QueueName("default"),
        concurrency=4,
        status=status,
    )


def test_a_heartbeat_is_kept_for_three_intervals() -> None:
    assert timedelta(seconds=15) == expires_in(INTERVAL)


@pytest.mark.parametrize("status", LIVING)
@pytest.mark.parametrize("age", [timedelta(), -INSTANT, 3 * INTERVAL])
def test_a_worker_is_what_it_says_while_it_is_heard(status: WorkerStatus, age: timedelta) -> None:
    assert status is liveness(a_heartbeat(age=age, status=status), now=NOW, interval=INTERVAL)


@pytest.mark.parametrize("status", LIVING)
def test_a_worker_that_was_not_heard_for_longer_than_three_intervals_is_stale(status: WorkerStatus) -> None:
    heartbeat = a_heartbeat(age=3 * INTERVAL + INSTANT, status=status)

    assert WorkerStatus.STALE is liveness(heartbeat, now=NOW, interval=INTERVAL)


def test_a_worker_whose_heartbeat_is_gone_is_stale() -> None:
    assert WorkerStatus.STALE is liveness(None, now=NOW, interval=INTERVAL)


def test_a_worker_that_said_goodbye_is_not_stale() -> None:
    heartbeat = a_heartbeat(age=timedelta(hours=1), status=WorkerStatus.STOPPED)

    assert WorkerStatus.STOPPED is liveness(heartbeat, now=NOW, interval=INTERVAL)


@pytest.mark.parametrize(
    ("active", "draining", "status"),
    [
        (0, False, WorkerStatus.READY),
        (1, False, WorkerStatus.BUSY),
        (4, False, WorkerStatus.BUSY),
        (0, True, WorkerStatus.DRAINING),
        (4, True, WorkerStatus.DRAINING),
    ],
)
def test_a_worker_reports_what_it_does(*, active: int, draining: bool, status: WorkerStatus) -> None:
    assert status is self_reported(active=active, draining=draining)


def test_a_heartbeat_is_a_value() -> None:
    assert replace(a_heartbeat(), active_tasks=1) != a_heartbeat()


def test_the_statuses_are_the_contracts() -> None:
    names = ["starting", "ready", "busy", "draining", "stopped", "stale"]

    assert names == [status.value for status in WorkerStatus]


def test_another_start_is_another_life_and_so_is_another_token_in_the_same_moment() -> None:
    heartbeat = replace(a_heartbeat(), life="one")

    assert heartbeat.is_of_same_life(replace(heartbeat, last_heartbeat=NOW + INTERVAL, active_tasks=1))
    assert not heartbeat.is_of_same_life(replace(heartbeat, life="other"))
    assert not heartbeat.is_of_same_life(replace(heartbeat, started_at=BEGIN + INSTANT))
