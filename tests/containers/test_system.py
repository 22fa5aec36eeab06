"""The images and the compose file, on a Docker engine: without one these tests fail."""

from collections.abc import Iterator
from http import HTTPStatus

import pytest
from docker.models.containers import Container

from tests.containers.system import KEY, System, end, grace_of, running_system, until

# the first of them builds the images
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with running_system() as system:
        yield system


@pytest.fixture
def own_system() -> Iterator[System]:
    """A system for this test alone, which ends parts of it."""
    with running_system() as system:
        yield system


def of_process_one(container: Container, name: str) -> bytes:
    output: bytes = container.exec_run(["cat", f"/proc/1/{name}"]).output
    return output


def test_the_api_is_ready(system: System) -> None:
    answer = system.http.get("/ready")

    assert (answer.status_code, answer.json()["problems"]) == (HTTPStatus.OK, [])


def test_a_task_is_carried_out(system: System) -> None:
    task_id = system.submit("echo_task", {"text": "hello"})

    task = system.task(task_id, wait_s=30)

    assert (task["status"], task["result"]) == ("succeeded", {"text": "hello"})


def test_acts_of_operators_need_the_key(system: System) -> None:
    path = "/api/v1/queue/default/resume"

    assert system.http.post(path).status_code == HTTPStatus.UNAUTHORIZED
    assert system.http.post(path, headers={"X-API-Key": KEY}).is_success


@pytest.mark.parametrize("name", ["api", "worker"])
def test_process_one_is_dtq_without_any_right(system: System, name: str) -> None:
    container: Container = getattr(system, name)

    status = dict(line.split(":\t", 1) for line in of_process_one(container, "status").decode().splitlines())
    command = of_process_one(container, "cmdline").decode().split("\0")

    assert {"10001"} == set(status["Uid"].split())
    assert {"10001"} == set(status["Gid"].split())
    assert (0, "1") == (int(status["CapEff"], 16), status["NoNewPrivs"])
    assert ["/opt/dtq/bin/dtq", name, "run"] == command[1:4]


@pytest.mark.parametrize("name", ["api", "worker"])
def test_an_image_holds_no_installer_and_no_file_can_be_written(system: System, name: str) -> None:
    container: Container = getattr(system, name)

    assert container.exec_run(["/opt/dtq/bin/python", "-c", "import pip"]).exit_code
    assert container.exec_run(["touch", "/app/a"]).exit_code


def test_a_worker_told_to_stop_finishes_what_runs(own_system: System) -> None:
    task_id = own_system.submit("sleep_task", {"seconds": 5})
    until(lambda: own_system.task(task_id)["status"] == "running", what="the task runs")

    code = end(own_system.worker, grace_s=grace_of("worker"))

    assert code == 0
    task = own_system.task(task_id)
    assert ("succeeded", 1) == (task["status"], task["attempt"])


def test_an_api_told_to_stop_ends_well(own_system: System) -> None:
    assert end(own_system.api, grace_s=grace_of("api")) == 0
