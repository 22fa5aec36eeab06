"""The shortest way through everything: submit, run, look."""

import json

import pytest

from tests.integration.deployment import Deployment, Diary
from tests.integration.programs import until


def test_submit_and_wait_prints_the_task_with_its_result(deployment: Deployment) -> None:
    deployment.worker()

    done = deployment.cli("submit", "--type", "echo_task", "--payload", '{"hello": "world"}', "--wait", "20", "--json")

    assert 0 == done.returncode, done.stderr
    body = json.loads(done.stdout)
    assert ("succeeded", {"hello": "world"}, 1) == (body["status"], body["result"], body["attempt"])


def test_the_same_over_http(deployment: Deployment) -> None:
    deployment.worker()
    api = deployment.api()

    task_id = api.submit("echo_task", {"hello": "world"})

    deployment.wait_for_end(task_id)
    body = api.client.get(f"/api/v1/tasks/{task_id}").json()
    assert ("succeeded", {"hello": "world"}) == (body["status"], body["result"])


@pytest.mark.parametrize(
    ("task_type", "payload", "status"),
    [
        ("sleep_task", {"seconds": 0.01}, "succeeded"),
        ("slow_task", {"seconds": 0.01}, "succeeded"),
        ("fibonacci_task", {"n": 15}, "succeeded"),
        ("flaky_task", {"fail_times": 2}, "succeeded"),
        ("counter_task", {"name": "round-trip"}, "succeeded"),
        ("always_fail_task", {}, "dead_lettered"),
    ],
)
def test_every_demo_task_ends_as_it_says(
    deployment: Deployment, task_type: str, payload: dict[str, object], status: str
) -> None:
    deployment.worker()
    api = deployment.api()

    task_id = api.submit(task_type, payload, max_attempts=3)

    assert status == deployment.wait_for_end(task_id)


@pytest.mark.parametrize("task_type", ["lose_redis", "lose_redis_in_time"])
def test_a_handler_that_loses_its_own_redis_is_tried_again(
    deployment: Deployment, diary: Diary, task_type: str
) -> None:
    deployment.worker()
    api = deployment.api()

    task_id = api.submit(task_type, {"diary": str(diary.path)})

    assert "succeeded" == deployment.wait_for_end(task_id)
    assert [1, 2] == [start.attempt for start in diary.of(task_id)]


def test_a_delayed_task_runs_when_it_is_due(deployment: Deployment, diary: Diary) -> None:
    deployment.worker()
    api = deployment.api()

    task_id = api.submit("note", {"diary": str(diary.path)}, delay_seconds=0.5)

    assert "pending" == deployment.status(task_id)
    assert "succeeded" == deployment.wait_for_end(task_id)


def test_a_running_task_hears_of_its_cancellation_within_a_second(deployment: Deployment, diary: Diary) -> None:
    deployment.worker()
    api = deployment.api()
    task_id = api.submit("hold", {"diary": str(diary.path), "until": "/nowhere/at/all"})
    until(lambda: diary.of(task_id))

    answer = api.client.post(f"/api/v1/tasks/{task_id}/cancel")

    assert 409 == answer.status_code
    until(lambda: deployment.status(task_id) == "cancelled", within_s=1.0, what="the cancellation")
