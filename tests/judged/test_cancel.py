"""A running handler hears of its cancellation: within a second by the control channel, within two without it."""

import time
from urllib.parse import urlsplit

import pytest

from dtq.domain.status import TaskStatus
from tests.judged.sizes import QUICK
from tests.judged.system import Api, System, a_gated_task, a_task
from tests.judged.waiting import wait_until

DEFAULTS = {"DTQ_VISIBILITY_TIMEOUT_S": "30", "DTQ_HEARTBEAT_INTERVAL_S": "5"}
CANCELS = 4


def cancel_seconds(system: System, api: Api) -> float:
    """Cancel a running task and return after how long its handler heard of it."""
    (task_id,) = system.create(a_gated_task("never"))
    system.started(task_id)
    asked_at = time.monotonic()
    answer = api.http.post(f"/api/v1/tasks/{task_id}/cancel")
    assert (409, "CANCEL_REQUESTED") == (answer.status_code, answer.json()["code"])
    assert TaskStatus.CANCELLED is system.ended(task_id).status
    (heard,) = system.journal.of(task_id, "cancelled")
    return heard.at - asked_at


def test_a_running_handler_hears_of_its_cancellation_within_a_second(system: System) -> None:
    system.worker(DEFAULTS)
    api = system.api(DEFAULTS)

    waits = [cancel_seconds(system, api) for _ in range(CANCELS)]

    assert max(waits) < 1
    # the beat, every second, would take half of one on average: this was the channel
    assert sum(waits) / CANCELS < 0.25, waits


def test_without_the_control_channel_it_hears_within_two_seconds(own_system: System) -> None:
    system = own_system
    system.worker(DEFAULTS)
    system.redis.execute_command("ACL", "SETUSER", "mute", "on", ">pass", "~*", "+@all", "&*")
    parts = urlsplit(system.server.url)
    url = parts._replace(netloc=f"mute:pass@{parts.netloc}").geturl()
    api = system.api(DEFAULTS | {"DTQ_REDIS_URL": url})
    system.redis.execute_command("ACL", "SETUSER", "mute", "resetchannels", f"&{system.keys.events}")

    waits = [cancel_seconds(system, api) for _ in range(CANCELS)]

    assert CANCELS == api.log.count("signal_lost")
    assert max(waits) < 2, waits


@pytest.mark.parametrize("task_type", ["stubborn", "gated_sync"])
def test_a_handler_that_does_not_listen_ends_cancelled_too(system: System, task_type: str) -> None:
    worker = system.worker(QUICK, concurrency=1)
    api = system.api(QUICK)
    (task_id,) = system.create(a_gated_task("late", task_type=task_type))
    system.started(task_id)

    assert 409 == api.http.post(f"/api/v1/tasks/{task_id}/cancel").status_code
    wait_until(lambda: system.task(task_id).cancel_requested, within=5, what="the request is stored")
    system.open_gate("late")
    ended = system.ended(task_id)

    assert (TaskStatus.CANCELLED, 1) == (ended.status, ended.attempt)
    assert system.run(system.backend.broker.result(task_id)) is None
    (probe,) = system.create(a_task("echo"))
    assert TaskStatus.SUCCEEDED is system.ended(probe).status
    assert worker.alive()
