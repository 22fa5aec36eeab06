"""Two APIs and two workers over one broker, scraped side by side: nothing that happened once is counted twice."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from dependency_injector import providers
from litestar.testing import AsyncTestClient

from dtq import PermanentError, RetryableError, TaskContext, task
from dtq.adapters.memory.clock import settle
from dtq.adapters.prometheus import METRICS, Kind, Role
from dtq.domain.task import Task, WorkerId
from dtq.entrypoints.config import Settings, load
from dtq.entrypoints.container import Container, build, connect
from dtq.entrypoints.http.app import create_app
from dtq.entrypoints.part_options import backend_options
from dtq.handlers import Registry
from dtq.ports.backend import Backend
from tests.entrypoints.recorder import Recorder
from tests.scraped import Scraped, summed

TASKS = "/api/v1/tasks"
ENVIRONMENT = {"DTQ_RETRY_BASE_DELAY": "0.01", "DTQ_RETRY_MAX_DELAY": "0.02", "DTQ_HEARTBEAT_INTERVAL_S": "0.2"}


@task("greet")
async def greet(payload: dict[str, object], ctx: TaskContext) -> str:
    del payload, ctx
    return "hello"


@task("flaky")
async def flaky(payload: dict[str, object], ctx: TaskContext) -> str:
    del payload
    if ctx.attempt == 1:
        raise RetryableError("once")
    return "at last"


@task("broken")
async def broken(payload: dict[str, object], ctx: TaskContext) -> str:
    del payload, ctx
    raise PermanentError("never")


REGISTRY = Registry.of(greet, flaky, broken)


class Deployment:
    """The processes of one deployment, in this process."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._settings = load(environment=ENVIRONMENT).settings
        self.backend = connect("memory://", options=backend_options(self._settings))
        self.apis: list[AsyncTestClient[Any]] = []
        self._workers: dict[str, tuple[Container, asyncio.Task[Any]]] = {}

    def _process(self, service: str, worker_id: WorkerId | None = None) -> Container:
        return a_process(self._settings, self.backend, service=service, worker_id=worker_id)

    async def start_api(self) -> None:
        app = create_app(self._process("api"))
        self.apis.append(await self._stack.enter_async_context(AsyncTestClient(app)))

    def start_worker(self, worker_id: str) -> None:
        container = self._process("worker", WorkerId(worker_id))
        worker = container.worker()
        container.metrics().watch_worker(lambda: worker.active)
        container.metrics().watch_loop(container.lag().worst)
        self._workers[worker_id] = (container, asyncio.create_task(worker.run()))

    async def submit(self, number: int, task_type: str, **fields: object) -> str:
        body = {"task_type": task_type, "payload": {}, **fields}
        answer = await self.apis[number].post(TASKS, json=body)
        assert 202 == answer.status_code, answer.text
        return str(answer.json()["task_id"])

    async def all_ended(self) -> None:
        async with asyncio.timeout(20):
            while not all(task.is_terminal for task in await self._recent()) or self._is_busy():
                await settle()

    def _is_busy(self) -> bool:
        return any(container.worker().active for container, _ in self._workers.values())

    async def _recent(self) -> Sequence[Task]:
        return (await self.backend.broker.recent(queue=None, status=None, limit=500)).tasks

    async def scrapes(self) -> dict[Role, list[Scraped]]:
        apis = [Scraped((await api.get("/metrics")).text) for api in self.apis]
        workers = [Scraped(container.metrics().text().decode()) for container, _ in self._workers.values()]
        return {Role.API: apis, Role.WORKER: workers}

    async def stop(self) -> None:
        for container, life in self._workers.values():
            container.worker().request_stop()
            await life


def a_process(settings: Settings, backend: Backend, *, service: str, worker_id: WorkerId | None) -> Container:
    container = build(settings, registry=REGISTRY, service=service, worker_id=worker_id)
    container.backend.override(providers.Object(backend))
    container.log.override(providers.Object(Recorder()))
    return container


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    async with AsyncExitStack() as stack:
        deployment = Deployment(stack)
        for _ in range(2):
            await deployment.start_api()
        for worker_id in ("one", "two"):
            deployment.start_worker(worker_id)
        yield deployment
        await deployment.stop()


async def test_what_happens_once_is_counted_once_over_all_processes(deployment: Deployment) -> None:
    for number in range(20):
        await deployment.submit(number % 2, "greet", priority=number % 10)
    for number in range(6):
        await deployment.submit(number % 2, "flaky")
    for number in range(4):
        await deployment.submit(number % 2, "broken")
    cancelled = await deployment.submit(0, "greet", delay_seconds=60)
    await deployment.apis[1].post(f"{TASKS}/{cancelled}/cancel")
    await deployment.apis[0].post(TASKS, json={"task_type": "nobody", "payload": {}})
    await deployment.all_ended()

    scrapes = await deployment.scrapes()

    everything = [*scrapes[Role.API], *scrapes[Role.WORKER]]
    totals = {metric.name: summed(everything, metric.name) for metric in METRICS if metric.kind is Kind.COUNTER}
    del totals["dtq_redis_operations_total"]
    assert {
        "dtq_tasks_submitted_total": 31,
        "dtq_tasks_started_total": 36,
        "dtq_tasks_succeeded_total": 26,
        "dtq_tasks_failed_total": 0,
        "dtq_tasks_retried_total": 6,
        "dtq_tasks_dead_lettered_total": 4,
        "dtq_tasks_completed_total": 31,
        "dtq_task_attempts_total": 36,
        "dtq_worker_tasks_total": 36,
        "dtq_ingest_rejected_total": 1,
    } == totals
    measured = {metric.name for metric in METRICS if metric.kind is Kind.HISTOGRAM}
    assert {
        "dtq_task_wait_seconds": 30,
        "dtq_task_duration_seconds": 26,
        "dtq_task_execution_seconds": 26,
        "dtq_retry_delay_seconds": 6,
    } == {name: summed(everything, f"{name}_count") for name in measured}


async def test_gauges_of_the_deployment_come_from_apis_alone_and_all_say_the_same(deployment: Deployment) -> None:
    for _ in range(3):
        await deployment.submit(0, "greet", delay_seconds=60)
    async with asyncio.timeout(20):
        while len(await deployment.backend.workers.known()) < 2:
            await settle()

    scrapes = await deployment.scrapes()

    for name, expected in (("dtq_retry_scheduled", 3), ("dtq_workers_active", 2), ("dtq_queue_depth", 0)):
        assert [[expected]] * 2 == [[*shown.of(name).values()] for shown in scrapes[Role.API]]
        assert [{}, {}] == [shown.of(name) for shown in scrapes[Role.WORKER]]


async def test_each_worker_speaks_for_itself(deployment: Deployment) -> None:
    for _ in range(8):
        await deployment.submit(0, "greet")
    await deployment.all_ended()

    scrapes = await deployment.scrapes()

    assert [{("one",): 0}, {("two",): 0}] == [shown.of("dtq_worker_inflight") for shown in scrapes[Role.WORKER]]
    ids = Counter(labels[-1] for shown in scrapes[Role.WORKER] for labels in shown.of("dtq_worker_tasks_total"))
    assert set(ids) <= {"one", "two"}
    assert 8 == summed(scrapes[Role.WORKER], "dtq_worker_tasks_total")


async def test_every_metric_of_a_worker_is_there_and_no_other(deployment: Deployment) -> None:
    await deployment.submit(0, "flaky")
    await deployment.submit(0, "broken")
    await deployment.all_ended()

    scrapes = await deployment.scrapes()

    expected = {metric.name: metric for metric in METRICS if Role.WORKER in metric.roles}
    for shown in scrapes[Role.WORKER]:
        assert {name: str(metric.kind) for name, metric in expected.items()} == shown.kinds
        used = {name: shown.labels_of(name) for name in expected}
        assert [] == [name for name, labels in used.items() if labels and labels != set(expected[name].labels)]


async def test_a_bounded_number_of_series_is_left_of_whatever_strangers_send(deployment: Deployment) -> None:
    api = deployment.apis[0]
    for number in range(150):
        body = {"task_type": f"t{number}", "payload": {}, "queue": f"q{number}", "idempotency_key": f"k{number}"}
        await api.post(TASKS, json=body, headers={"X-Request-ID": f"r{number}", "X-API-Key": f"a{number}"})
        await api.get(f"{TASKS}/{number:032x}")
        await api.post(f"/api/v1/queue/w{number}/resume")

    (shown, _) = (await deployment.scrapes())[Role.API]

    assert {"default", "invalid"} >= shown.values_of("queue")
    assert shown.series < 15
