"""What Prometheus scrapes of an API."""

import asyncio
import io
import json

import pytest
from dependency_injector import providers
from litestar.testing import AsyncTestClient

from dtq.adapters.logs import LogObserver
from dtq.adapters.prometheus import METRICS, Kind, Role
from dtq.entrypoints.config import load
from dtq.entrypoints.container import build, connect
from dtq.entrypoints.http.app import create_app
from dtq.entrypoints.part_options import backend_options
from dtq.handlers import Registry
from tests.application.link import Link, over
from tests.entrypoints.conftest import Api, MakeApi, greet
from tests.scraped import Scraped

TASKS = "/api/v1/tasks"
REJECTED = "dtq_ingest_rejected_total"


async def scraped(api: Api) -> Scraped:
    answer = await api.client.get("/metrics")
    assert (200, "text/plain; version=0.0.4; charset=utf-8") == (answer.status_code, answer.headers["content-type"])
    return Scraped(answer.text)


async def test_every_metric_of_an_api_is_there_and_no_other(api: Api) -> None:
    shown = await scraped(api)

    assert {metric.name: str(metric.kind) for metric in METRICS if Role.API in metric.roles} == shown.kinds


async def test_tasks_that_were_created_are_counted_and_duplicates_are_not(api: Api) -> None:
    for queue in ("default", "mail", "mail"):
        await api.submit(queue=queue, delay_seconds=60)
    body = {"task_type": "greet", "payload": {}, "idempotency_key": "k", "delay_seconds": 60}
    assert [202, 409] == [(await api.client.post(TASKS, json=body)).status_code for _ in range(2)]

    shown = await scraped(api)

    assert {("default", "greet"): 2, ("mail", "greet"): 2} == shown.of("dtq_tasks_submitted_total")
    assert {("default", "idempotency"): 1} == shown.of(REJECTED)


async def test_a_cancellation_through_the_api_is_counted_there(api: Api) -> None:
    task_id = await api.submit()

    await api.client.post(f"{TASKS}/{task_id}/cancel")

    assert {("default", "cancelled", "greet"): 1} == (await scraped(api)).of("dtq_tasks_completed_total")


async def test_the_gauges_of_the_deployment_are_read_from_the_broker(api: Api) -> None:
    await api.submit(priority=9)
    await api.submit(queue="mail")
    await api.submit(delay_seconds=60)

    shown = await scraped(api)

    assert {("default",): 1, ("mail",): 1} == shown.of("dtq_queue_depth")
    assert {("default",): 0, ("mail",): 0} == shown.of("dtq_queue_pending")
    names = ("dtq_retry_scheduled", "dtq_dlq_depth", "dtq_workers_active")
    assert [1, 0, 0] == [shown.value(name) for name in names]
    assert 0 <= (shown.value("dtq_event_loop_lag_seconds") or 0) < 60


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        (b"{", JSON, "invalid_task"),
        (b"{}", {"content-type": "text/plain"}, "invalid_request"),
        (b'{"task_type":"greet","payload":{},"queue":"UPPER"}', JSON, "invalid_task"),
        (b'{"task_type":"greet","payload":{},"queue":{"a":1}}', JSON, "invalid_task"),
        (b'{"task_type":"nobody","payload":{},"queue":"nowhere"}', JSON, "unknown_task_type"),
        (b'{"task_type":"greet","queue":"mail","payload":{"a":"' + 300_000 * b"x" + b'"}}', JSON, "payload_too_large"),
        (b" " * 400_000, JSON, "payload_too_large"),
    ],
    ids=["no json", "no json type", "no name", "no text", "unknown type", "large payload", "large body"],
)
async def test_a_refused_submission_is_counted_under_its_reason(
    api: Api, body: bytes, headers: dict[str, str], reason: str
) -> None:
    answer = await api.client.post(TASKS, content=body, headers=headers)

    assert 400 <= answer.status_code < 500
    assert {("invalid", reason): 1} == (await scraped(api)).of(REJECTED)


async def test_each_refused_submission_of_a_batch_is_counted(api: Api) -> None:
    good = {"task_type": "greet", "payload": {}}
    batch = {"tasks": [good, good | {"task_type": "nobody"}, 7, good | {"priority": 77}, good]}

    answer = await api.client.post(f"{TASKS}/batch", json=batch)
    refused = await api.client.post(f"{TASKS}/batch", json={"tasks": []})

    assert (200, 400) == (answer.status_code, refused.status_code)
    shown = await scraped(api)
    assert {("default", "greet"): 2} == shown.of("dtq_tasks_submitted_total")
    assert {
        ("default", "unknown_task_type"): 1,
        ("default", "invalid_task"): 1,
        ("invalid", "invalid_task"): 1,
        ("invalid", "invalid_request"): 1,
    } == shown.of(REJECTED)


async def test_a_full_queue_is_named(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_QUEUE_DEPTH": "1"})
    await api.submit(queue="mail")

    answer = await api.client.post(TASKS, json={"task_type": "greet", "payload": {}, "queue": "mail"})

    assert 429 == answer.status_code
    assert {("mail", "queue_full"): 1} == (await scraped(api)).of(REJECTED)


async def test_a_queue_too_many_is_not_named(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_MAX_QUEUES": "2"})
    await api.submit(queue="mail")

    for number in range(20):
        await api.client.post(TASKS, json={"task_type": "greet", "payload": {}, "queue": f"q{number}"})

    shown = await scraped(api)
    assert {("invalid", "too_many_queues"): 20} == shown.of(REJECTED)
    assert {"default", "mail", "invalid"} >= shown.values_of("queue")


async def test_while_the_broker_is_away_what_this_process_counted_is_still_served(make_api: MakeApi) -> None:
    link = Link()
    settings = load(environment={}).settings
    backend = connect("memory://", options=backend_options(settings))
    api = await make_api(backend=over(link, backend))
    await api.submit()
    link.is_down = True

    shown = await scraped(api)

    link.is_down = False
    cluster = [metric.name for metric in METRICS if metric.kind is Kind.GAUGE and "loop" not in metric.name]
    assert {} == {name: samples for name in cluster if (samples := shown.of(name))}
    assert {("default", "greet"): 1} == shown.of("dtq_tasks_submitted_total")
    assert ("gauges_unread", {"error": "BrokerUnavailable"}) in api.notes.notices


async def test_many_scrapes_at_once_ask_the_broker_once(make_api: MakeApi) -> None:
    link = Link()
    settings = load(environment={}).settings
    api = await make_api(backend=over(link, connect("memory://", options=backend_options(settings))))

    await asyncio.gather(*[scraped(api) for _ in range(20)])

    assert 1 == link.calls["survey"]


async def test_metrics_are_open_like_every_look(make_api: MakeApi) -> None:
    api = await make_api({"DTQ_API_KEY": "secret"})

    assert "secret" not in (await scraped(api)).text


async def test_every_line_of_a_request_names_it() -> None:
    stream, link = io.StringIO(), Link()
    settings = load(environment={}).settings
    container = build(settings, registry=Registry.of(greet), service="api")
    backend = connect("memory://", options=backend_options(settings))
    container.backend.override(providers.Object(over(link, backend)))
    log = LogObserver(stream, service="api", level="DEBUG", as_json=True)
    container.log.override(providers.Object(log))
    body = {"task_type": "greet", "payload": {}}
    async with AsyncTestClient(create_app(container)) as client:
        await client.post(TASKS, json=body, headers={"X-Request-ID": "accepted"})
        await client.post(TASKS, json=body | {"task_type": "nobody"}, headers={"X-Request-ID": "refused"})
        link.break_down("recent")
        failed = await client.get(TASKS, headers={"X-Request-ID": "failed"})
        log.noticed("nobody asked")
    await asyncio.sleep(0)  # noqa: TID251 - lines are written at the end of the turn that they are said in

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    told = {line["event"]: line.get("request_id") for line in lines}
    assert 500 == failed.status_code
    expected = {"task changed": "accepted", "submission_rejected": "refused", "request_failed": "failed"}
    assert {**expected, "nobody asked": None} == told
