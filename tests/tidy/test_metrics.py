"""docs/metrics.md names every metric, label value and place that there is, and no other."""

import re
from pathlib import Path

from dtq.adapters.prometheus import METRICS, Metric, Role
from dtq.adapters.prometheus.labels import INVALID, OTHER, UNKNOWN
from dtq.adapters.redis.client import Result
from dtq.adapters.redis.scripts import ALL
from dtq.application.rejections import reason_of
from dtq.domain import errors
from dtq.domain.errors import DtqError
from dtq.domain.outcome import AttemptResult
from dtq.domain.task import TaskId
from tests.tidy.tables import rows

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/metrics.md").read_text()
NOT_OF_REDIS = {"stale"}
COMMAND = re.compile(r"client\.call\(\s*\"([A-Z]+)\"")


def values(title: str) -> set[str]:
    """The first cells of the table under a title of its first column."""
    table = PAGE.partition(f"\n| {title} |")[2].partition("\n\n")[0]
    return {line.split("|")[1].strip(" `") for line in table.splitlines() if line.startswith("| `")}


def expected_row(metric: Metric) -> list[str]:
    return [str(metric.kind), ", ".join(metric.labels), ", ".join(role for role in Role if role in metric.roles)]


def test_every_metric_is_there_with_kind_labels_and_place() -> None:
    shown = {name: cells[:3] for name, cells in rows(PAGE, "## The metrics").items()}

    assert {metric.name: expected_row(metric) for metric in METRICS} == shown


def test_every_metric_has_a_meaning_on_the_page_and_in_its_help() -> None:
    meanings = {name: cells[3] for name, cells in rows(PAGE, "## The metrics").items()}

    assert [] == [metric.name for metric in METRICS if not meanings[metric.name].endswith((".", ".**"))]
    assert [] == [metric.name for metric in METRICS if "." not in metric.meaning]


def test_what_was_added_is_said_to_be() -> None:
    added = [name for name, cells in rows(PAGE, "## The metrics").items() if "addition to the contract" in cells[3]]

    assert ["dtq_event_loop_lag_seconds"] == added


def test_every_result_of_an_attempt_is_there() -> None:
    assert set(AttemptResult) == values("result of an attempt")


def test_every_result_of_a_request_to_redis_is_there() -> None:
    assert set(Result) | NOT_OF_REDIS == values("result of a request to Redis")


def test_every_reason_of_a_refusal_is_there() -> None:
    submission = (
        errors.InvalidTask(()),
        errors.InvalidRequest(()),
        errors.UnknownTaskType(""),
        errors.PayloadTooLarge(size=1, limit=0),
        errors.IdempotencyInProgress(TaskId(""), status=None),
        *(errors.QueueFull(reason, value=0, limit=0) for reason in ("queue_full", "schedule_full", "too_many_queues")),
        errors.BrokerUnavailable(),
        errors.OutcomeUnknown(),
    )
    assert all(isinstance(error, DtqError) for error in submission)

    assert set(map(reason_of, submission)) == values("reason of a refusal")


def test_every_script_is_named() -> None:
    assert [] == [script.name for script in ALL if f"`{script.name}`" not in PAGE]


def test_the_labels_that_stand_for_others_are_named() -> None:
    assert [] == [word for word in (INVALID, OTHER, UNKNOWN) if f"`{word}`" not in PAGE]


def test_redis_cannot_make_more_series_than_the_page_says() -> None:
    sources = (ROOT / "src/dtq/adapters/redis").glob("*.py")
    commands = {command for path in sources for command in COMMAND.findall(path.read_text())}
    operations = len(commands) + len(ALL) + len({"script", "pipeline", "subscribe"})

    (said,) = re.findall(r"\| both \| (\d+) for Redis", PAGE)

    assert len(commands) > 10
    assert operations * len(Result) + len(NOT_OF_REDIS) <= int(said)
