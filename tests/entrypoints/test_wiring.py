"""What operators set reaches those who work by it, and the contract's import paths lead to the code."""

import importlib
from datetime import timedelta
from importlib.metadata import entry_points

import pytest

import dtq
from dtq.domain.outcome import PermanentError, classify
from dtq.domain.retry import RetryPolicy
from dtq.entrypoints import cli
from dtq.entrypoints.config import load
from dtq.entrypoints.container import build, worker_id_of
from dtq.entrypoints.part_options import backend_options
from dtq.handlers import Registry
from tests.entrypoints.conftest import Api, MakeApi
from tests.entrypoints.driver import finish_with, start_next

SECOND = timedelta(seconds=1)


def test_the_backend_is_told_how_long_and_how_much_to_keep() -> None:
    environment = {
        "DTQ_KEY_PREFIX": "mine",
        "DTQ_TASK_RETENTION_S": "900",
        "DTQ_RESULT_RETENTION_S": "7",
        "DTQ_IDEM_TTL_S": "800",
        "DTQ_DLQ_MAXLEN": "12",
    }

    options = backend_options(load(environment=environment).settings)

    assert ("mine", 12) == (options.key_prefix, options.dead_letter_limit)
    kept = options.retention
    assert (900 * SECOND, 7 * SECOND, 800 * SECOND) == (kept.task, kept.result, kept.idempotency)


def test_the_worker_is_told_how_to_work() -> None:
    environment = {
        "DTQ_REDIS_URL": "memory://",
        "DTQ_WORKER_ID": "mine",
        "DTQ_WORKER_QUEUE": "mail",
        "DTQ_WORKER_CONCURRENCY": "3",
        "DTQ_VISIBILITY_TIMEOUT_S": "9",
        "DTQ_HEARTBEAT_INTERVAL_S": "2",
        "DTQ_DRAIN_TIMEOUT_S": "4",
        "DTQ_RESULT_MAX_BYTES": "100",
        "DTQ_RETRY_BASE_DELAY": "2",
        "DTQ_RETRY_MAX_DELAY": "8",
        "DTQ_RETRY_JITTER": "0.5",
        "DTQ_DLQ_ENABLED": "no",
        "DTQ_IDEM_TTL_S": "1000",
    }
    settings = load(environment=environment).settings

    container = build(settings, registry=Registry(), service="test", worker_id=worker_id_of(settings))
    told = container.worker.kwargs["settings"]()

    assert ("mine", "mail", 3, 100) == (told.worker_id, told.queue, told.concurrency, told.result_max_bytes)
    assert (9 * SECOND, 2 * SECOND, 4 * SECOND) == (
        told.visibility_timeout,
        told.heartbeat_interval,
        told.drain_timeout,
    )
    assert RetryPolicy(base=2 * SECOND, maximum=8 * SECOND, jitter=0.5) == told.failure_policy.retry
    assert (False, 500 * SECOND) == (told.failure_policy.dead_letters, told.keep_alive_after)


@pytest.mark.parametrize(
    ("environment", "field", "expected"),
    [
        ({}, "timeout_ms", 30_000),
        ({"DTQ_TASK_TIMEOUT_MS": "7"}, "timeout_ms", 7),
        ({}, "max_attempts", 5),
        ({"DTQ_MAX_ATTEMPTS": "2"}, "max_attempts", 2),
    ],
)
async def test_what_a_submission_leaves_out_is_what_the_operator_has_set(
    make_api: MakeApi, environment: dict[str, str], field: str, expected: int
) -> None:
    api = await make_api(environment)

    task_id = await api.submit()

    assert expected == (await api.client.get(f"/api/v1/tasks/{task_id}")).json()[field]


@pytest.mark.parametrize(("given", "fields"), [("DTQ_MAX_SCHEDULED", {"delay_seconds": 9}), ("DTQ_MAX_QUEUES", {})])
async def test_a_limit_that_an_operator_has_set_refuses(
    make_api: MakeApi, given: str, fields: dict[str, object]
) -> None:
    api = await make_api({given: "1"})
    await api.submit(queue="default", **fields)

    answer = await api.client.post(
        "/api/v1/tasks", json={"task_type": "greet", "payload": {}, "queue": "second", **fields}
    )

    assert (429, "QUEUE_FULL") == (answer.status_code, answer.json()["code"])


async def test_the_key_of_a_task_that_failed_answers_with_it(api: Api) -> None:
    task_id = await api.submit(idempotency_key="k-1")
    await finish_with(api.backend, await start_next(api.backend), classify(PermanentError("no"), retryable=()))

    answer = await api.client.post(
        "/api/v1/tasks", json={"task_type": "greet", "payload": {}, "idempotency_key": "k-1"}
    )

    body = answer.json()
    assert (200, True, task_id, "dead_lettered") == (
        answer.status_code,
        *(body[name] for name in ("duplicate", "task_id", "status")),
    )


def test_the_contracts_import_paths_lead_to_the_code() -> None:
    tasks, command = importlib.import_module("dtq_tasks"), importlib.import_module("dtq_cli.cli")

    names = ("PermanentError", "RetryableError", "TaskContext", "idempotent_operation", "task")
    assert [getattr(dtq, name) for name in names] == [getattr(tasks, name) for name in names]
    assert command.main is cli.main


def test_the_command_is_the_one_of_the_package() -> None:
    (script,) = entry_points(group="console_scripts", name="dtq")

    assert script.load() is cli.main
