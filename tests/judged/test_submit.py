"""Judged item 2: a submitted task comes back with its result, through the command and through HTTP."""

import json

from tests.judged.system import System
from tests.judged.waiting import wait_until

DEMO = {"DTQ_TASK_MODULES": "dtq.demo"}


def test_submit_with_wait_prints_the_task_with_its_result(system: System) -> None:
    system.worker(DEMO)

    arguments = ("submit", "--type", "echo_task", "--payload", '{"hello": "world"}', "--wait")
    for_people = system.command(*arguments, settings=DEMO)
    for_programs = system.command(*arguments, "--json", settings=DEMO)

    assert (0, 0) == (for_people.returncode, for_programs.returncode), for_people.stderr + for_programs.stderr
    assert '{"hello":"world"}' in for_people.stdout.replace(": ", ":")
    assert "succeeded" in for_people.stdout
    shown = json.loads(for_programs.stdout)
    assert ("succeeded", 1, {"hello": "world"}) == (shown["status"], shown["attempt"], shown["result"])


def test_http_gives_the_same(system: System) -> None:
    system.worker(DEMO)
    api = system.api(DEMO)

    answer = api.http.post("/api/v1/tasks", json={"task_type": "echo_task", "payload": {"hello": "world"}})

    assert 202 == answer.status_code
    assert "queued" == answer.json()["status"]
    path = f"/api/v1/tasks/{answer.json()['task_id']}"
    wait_until(lambda: api.http.get(path).json()["status"] == "succeeded", within=10, what="the task succeeds")
    shown = api.http.get(path).json()
    assert (1, {"hello": "world"}, {"hello": "world"}) == (shown["attempt"], shown["payload"], shown["result"])
