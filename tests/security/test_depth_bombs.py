"""Check 7: nesting has one fixed limit, 64 levels, and whatever goes beyond is refused before it is parsed.

Each text at its bound is in tests/domain/test_json_text.py, bodies in tests/judged/bad_bodies.py.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from dtq.adapters.system import SystemClock
from tests.judged.bad_bodies import nested
from tests.security.site import ENTRY, JSON, Site

DEPTHS = (65, 500, 5_000, 40_000)
WITHIN_S = 0.5
"""Five times what such a refusal may take, for the machine may be busy."""


def arrays(depth: int) -> str:
    return '{"a": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


def unclosed(depth: int) -> str:
    return '{"a": ' + "[" * (depth - 1)


BOMBS = {f"{make.__name__} {depth}": make(depth) for make in (nested, arrays, unclosed) for depth in DEPTHS}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("member", ["payload", "metadata"])
def test_a_bomb_is_refused_at_once(site: Site, name: str, member: str) -> None:
    members = {"task_type": '"echo"', "payload": "{}", member: BOMBS[name]}
    body = ", ".join(f'"{key}": {text}' for key, text in members.items())
    clock = SystemClock()
    began_at = clock.monotonic()

    answer = site.post("{" + body + "}")

    assert (400, "INVALID_TASK") == (answer.status_code, answer.json()["code"])
    assert clock.monotonic() - began_at < WITHIN_S
    assert len(answer.content) < 1000


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_bomb_in_a_batch_harms_no_other_item(site: Site, depth: int) -> None:
    good = '{"task_type": "echo", "payload": {}}'
    bad = f'{{"task_type": "echo", "payload": {nested(depth)}}}'

    answer = site.api.http.post("/api/v1/tasks/batch", content=f'{{"tasks": [{good}, {bad}, {good}]}}', headers=JSON)

    assert [202, 400, 202] == [item["status_code"] for item in answer.json()["results"]]


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_in_an_entry_ends_its_task_and_not_the_worker(site: Site, name: str) -> None:
    task_id = site.slip_in({**ENTRY, "payload": BOMBS[name]})

    task = site.ended(task_id)

    assert task.failure is not None
    assert ("dead_lettered", "PayloadNotDecodable") == (task.status, task.failure.error_class)
    assert "nested deeper than 64 levels" == task.failure.error_message
    site.see_work_goes_on()


def test_the_command_line_has_the_same_limit(site: Site) -> None:
    texts = [nested(64), nested(65), arrays(20_000)]
    with ThreadPoolExecutor(2) as pool:
        done = list(
            pool.map(lambda text: site.system.command("submit", "--type", "echo", "--payload", "-", text=text), texts)
        )

    assert [0, 5, 5] == [one.returncode for one in done]
    for refused in done[1:]:
        assert "dtq: payload: nested deeper than 64 levels" == refused.stderr.splitlines()[-1]


def test_what_is_as_deep_as_may_be_goes_all_the_way(site: Site) -> None:
    task = site.run("echo", nested(64), metadata=json.loads(nested(64)))

    assert json.loads(nested(64)) == task["payload"] == task["result"] == task["metadata"]
    listed = site.api.http.get("/api/v1/tasks").json()["tasks"]
    assert task["metadata"] in [one["metadata"] for one in listed]
