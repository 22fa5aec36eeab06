"""Check 6: what Python itself says while handlers run is one line too, and has no word of theirs in it.

And a handler, or a library that it uses, may log as clumsily as it likes.
"""

import json
from collections.abc import Iterator

import pytest

from tests.judged.waiting import wait_until
from tests.security import voices
from tests.security.site import WITHIN_S, Site, standing
from tests.security.test_forged_log_lines import see_well_formed
from tests.servers import RedisServer

CANARY = "voice-canary"


@pytest.fixture(scope="module")
def speaking(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {"DTQ_TASK_MODULES": voices.__name__, "DTQ_LOG_JSON": "true"}
    with standing(redis_server, folder=tmp_path_factory.mktemp("speaking"), settings=settings) as site:
        yield site


def said(site: Site, way: str) -> tuple[str, str | None, str]:
    """Let a handler speak; return how its task ended, and what stands in the log since."""
    known = len(site.worker.log)
    task = site.run("speak", json.dumps({"way": way, "text": CANARY}), max_attempts=1)
    told = f'"task_id":"{task["task_id"]}"'
    wait_until(lambda: site.worker.log.count(told) > 1, within=WITHIN_S, what="the end of the task is told")
    return task["status"], task["error_message"], site.worker.log[known:]


@pytest.mark.parametrize("way", ["finalizer", "never awaited", "warning", "handler of the loop"])
def test_whatever_python_says_is_one_line_without_a_handlers_words(speaking: Site, way: str) -> None:
    status, _, log = said(speaking, way)

    assert "succeeded" == status
    see_well_formed(log, as_json=True)
    assert CANARY not in log


@pytest.mark.parametrize(
    "way", ["wrong format", "missing argument", "unprintable", "unprintable argument", "unprintable value"]
)
def test_a_clumsy_log_call_fails_no_task(speaking: Site, way: str) -> None:
    status, error, log = said(speaking, way)

    assert ("succeeded", None) == (status, error)
    see_well_formed(log, as_json=True)
