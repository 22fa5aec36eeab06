"""The handlers' side: errors that cannot be named, cut or told apart, and results that are text of their own.

Each by itself: tests/domain/test_outcome.py and tests/application/test_execution.py.
"""

import json
from collections.abc import Iterator

import pytest

from tests.security import unnameable
from tests.security.site import Site, standing
from tests.servers import RedisServer


@pytest.fixture(scope="module")
def odd(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {"DTQ_TASK_MODULES": unnameable.__name__}
    with standing(redis_server, folder=tmp_path_factory.mktemp("odd"), settings=settings) as site:
        yield site


@pytest.mark.parametrize("error", unnameable.ERRORS)
@pytest.mark.parametrize("task_type", ["raise", "raise_sync"])
def test_an_error_that_cannot_be_told_is_told_all_the_same(odd: Site, error: str, task_type: str) -> None:
    task = odd.run(task_type, json.dumps({"error": error}), max_attempts=3, timeout_ms=3_000)

    assert ("dead_lettered", 1) == (task["status"], task["attempt"])
    assert task["error_class"] not in {"TimeoutError", "CancelledError"}
    odd.see_work_goes_on()


def test_such_errors_cost_no_slot(odd: Site) -> None:
    for _ in range(2):
        for error in unnameable.ERRORS:
            odd.run("raise_sync", json.dumps({"error": error}), max_attempts=1, timeout_ms=3_000)

    odd.see_work_goes_on()


@pytest.mark.parametrize("text", unnameable.TEXTS)
def test_a_result_that_is_a_text_of_its_own_is_json_or_none(odd: Site, text: str) -> None:
    task_id = odd.submitted("give", json.dumps({"text": text}), max_attempts=1)
    odd.ended(task_id)

    answer = odd.api.http.get(f"/api/v1/tasks/{task_id}")

    task = json.loads(answer.content, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    expected = unnameable.TEXTS[text]
    found = ("succeeded", task["result"]) if expected is not None else (task["error_class"], None)
    assert found == (("succeeded", expected) if expected is not None else ("ResultNotSerializable", None))
