"""How a worker's process ends: its exit codes, and what becomes of its tasks."""

import signal

import pytest

from tests.integration.deployment import Deployment, Diary
from tests.integration.programs import Program, run_dtq, until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_drains_and_ends_with_0(deployment: Deployment, diary: Diary, number: signal.Signals) -> None:
    worker = deployment.worker()
    api = deployment.api()
    task_id = api.submit("note", {"diary": str(diary.path), "seconds": 0.5})
    until(lambda: diary.of(task_id))

    code = worker.end(number)

    assert (0, "succeeded") == (code, deployment.status(task_id))
    assert worker.logged("event", event_type="WORKER_STOPPED")


def test_what_a_drain_cannot_finish_goes_to_another_worker_at_once(deployment: Deployment, diary: Diary) -> None:
    worker = deployment.worker(DTQ_DRAIN_TIMEOUT_S="0.3", DTQ_VISIBILITY_TIMEOUT_S="60")
    api = deployment.api()
    task_id = api.submit("hold_first", {"diary": str(diary.path), "seconds": 60}, timeout_ms=120_000)
    until(lambda: diary.of(task_id))
    deployment.worker(DTQ_VISIBILITY_TIMEOUT_S="60")

    code = worker.end()

    assert 75 == code
    assert "succeeded" == deployment.wait_for_end(task_id, within_s=10)
    assert [1, 2] == [start.attempt for start in diary.of(task_id)]


def test_a_second_signal_ends_it_now(deployment: Deployment, diary: Diary) -> None:
    worker = deployment.worker(DTQ_DRAIN_TIMEOUT_S="60")
    api = deployment.api()
    task_id = api.submit("hold", {"diary": str(diary.path), "until": "/nowhere/at/all"})
    until(lambda: diary.of(task_id))
    worker.send(signal.SIGTERM)
    until(lambda: worker.logged("draining"))

    code = worker.end(within_s=5)

    assert 75 == code


def test_a_thread_that_cannot_be_stopped_does_not_hold_the_process(deployment: Deployment, diary: Diary) -> None:
    worker = deployment.worker(DTQ_DRAIN_TIMEOUT_S="0.3")
    api = deployment.api()
    task_id = api.submit("block_thread", {"diary": str(diary.path), "seconds": 60}, timeout_ms=120_000)
    until(lambda: diary.of(task_id))

    code = worker.end(within_s=10)

    assert 75 == code


def test_a_worker_whose_id_is_taken_ends_with_2(deployment: Deployment) -> None:
    deployment.worker(DTQ_WORKER_ID="the-one")

    second = deployment.start("worker", "run", DTQ_WORKER_ID="the-one")

    assert 2 == second.process.wait(timeout=20)
    assert second.logged("worker_cannot_start", code="WORKER_ID_IN_USE")


def test_a_worker_without_tasks_or_settings_ends_with_2(deployment: Deployment) -> None:
    nothing = deployment.cli("worker", "run", DTQ_TASK_MODULES="")
    wrong = deployment.cli("worker", "run", DTQ_WORKER_CONCURRENCY="0", DTQ_RETRY_JITTER="2")

    assert (2, 2) == (nothing.returncode, wrong.returncode)
    assert "no module with any is named" in nothing.stderr
    assert ["DTQ_WORKER_CONCURRENCY", "DTQ_RETRY_JITTER"] == [
        line.removeprefix("dtq: ").partition("=")[0] for line in wrong.stderr.splitlines()
    ]


def test_a_worker_waits_for_a_redis_that_is_not_there_yet(deployment: Deployment) -> None:
    worker = deployment.start("worker", "run", DTQ_REDIS_URL="redis://127.0.0.1:1/0")

    until(worker.lines, what="a word about it")

    assert worker.is_alive()
    assert worker.end(within_s=10) in {0, 75}


def test_modules_of_the_current_folder_and_a_queue_of_its_own(deployment: Deployment) -> None:
    (deployment.folder / "my_tasks.py").write_text(
        'from dtq import task\n\n@task("greet")\nasync def greet(payload, ctx):\n    return {"text": payload["name"]}\n'
    )
    settings = {**deployment.settings, "DTQ_TASK_MODULES": ""}

    with Program(
        "worker",
        "run",
        "--tasks",
        "my_tasks",
        "--queue",
        "greetings",
        settings=settings,
        log=deployment.folder / "log",
        folder=deployment.folder,
    ):
        done = run_dtq(
            "submit",
            "--tasks",
            "my_tasks",
            "--queue",
            "greetings",
            "--type",
            "greet",
            "--payload",
            '{"name": "Ada"}',
            "--wait",
            "20",
            settings=settings,
            folder=deployment.folder,
        )

    assert 0 == done.returncode, done.stderr
    assert '{"text":"Ada"}' in done.stdout
