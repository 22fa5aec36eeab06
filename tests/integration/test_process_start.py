"""How processes start, and how those end that cannot."""

from tests.judged.program import Program
from tests.judged.system import System
from tests.judged.waiting import wait_until

GREET = 'from dtq import task\n\n@task("greet")\nasync def greet(payload, ctx):\n    return {"text": payload["name"]}\n'


def test_a_worker_whose_id_is_taken_ends_with_2(system: System) -> None:
    first = system.worker()

    second = Program(
        "second",
        ["worker", "run"],
        environment=system.environment({"DTQ_WORKER_ID": first.worker_id}),
        folder=system.folder,
    )
    system.programs.append(second)

    assert 2 == second.exit_code(within=20)
    assert "WORKER_ID_IN_USE" in second.log


def test_a_worker_without_tasks_ends_with_2(system: System) -> None:
    done = system.command("worker", "run", settings={"DTQ_TASK_MODULES": ""})

    assert 2 == done.returncode
    assert "no module with any is named" in done.stderr


def test_every_fault_of_the_settings_is_told_at_once(system: System) -> None:
    wrong = {"DTQ_WORKER_CONCURRENCY": "0", "DTQ_RETRY_JITTER": "2"}

    for command in (["worker", "run"], ["api", "run"], ["dev"], ["list"]):
        done = system.command(*command, settings=wrong)

        named = [line.removeprefix("dtq: ").partition("=")[0] for line in done.stderr.splitlines()]
        assert (2, list(wrong)) == (done.returncode, named)


def test_a_worker_waits_for_a_redis_that_is_not_there_yet(system: System) -> None:
    worker = system.worker({"DTQ_REDIS_URL": "redis://127.0.0.1:1/0"}, ready=False)

    wait_until(lambda: worker.log, within=20, what="a word about it")

    assert worker.alive()
    worker.terminate()
    assert worker.exit_code(within=20) in {0, 75}


def test_modules_of_the_current_folder_and_a_queue_of_its_own(system: System) -> None:
    (system.folder / "my_tasks.py").write_text(GREET)
    none = {"DTQ_TASK_MODULES": ""}
    own = ["--tasks", "my_tasks", "--queue", "greetings"]
    worker = Program("own", ["worker", "run", *own], environment=system.environment(none), folder=system.folder)
    system.programs.append(worker)

    done = system.command(
        "submit", *own, "--type", "greet", "--payload", '{"name": "Ada"}', "--wait", "20", settings=none
    )

    assert 0 == done.returncode, done.stderr
    assert '{"text":"Ada"}' in done.stdout
