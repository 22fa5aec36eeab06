"""The demo tasks, through API and worker as processes."""

import pytest

from tests.judged.system import System


@pytest.mark.parametrize(
    ("task_type", "payload", "status"),
    [
        ("sleep_task", {"seconds": 0.01}, "succeeded"),
        ("slow_task", {"seconds": 0.01}, "succeeded"),
        ("fibonacci_task", {"n": 15}, "succeeded"),
        ("flaky_task", {"fail_times": 2}, "succeeded"),
        ("counter_task", {"name": "integration"}, "succeeded"),
        ("always_fail_task", {}, "dead_lettered"),
    ],
)
def test_every_demo_task_ends_as_it_says(
    system: System, task_type: str, payload: dict[str, object], status: str
) -> None:
    demo = {"DTQ_TASK_MODULES": "dtq.demo"}
    system.worker(demo)
    api = system.api(demo)

    accepted = api.http.post("/api/v1/tasks", json={"task_type": task_type, "payload": payload, "max_attempts": 3})

    assert status == system.ended(accepted.json()["task_id"]).status
