"""Metrics and probes of real processes: side by side, held up by a handler, and without their broker."""

import json
from typing import Any

import httpx

from dtq.adapters.prometheus import METRICS, Role
from tests.judged.system import System, Worker, a_gated_task, a_task
from tests.judged.waiting import wait_until
from tests.scraped import Scraped, summed
from tests.servers.process import LOOPBACK, free_port

WITHIN_S = 20.0
PROBE_S = 2.0
BLOCKED_S = 6.0
JSON_LOGS = {"DTQ_LOG_JSON": "true"}


class Metered:
    """A worker that serves its pages."""

    def __init__(self, system: System, settings: dict[str, str] | None = None) -> None:
        self.port = free_port()
        self.worker: Worker = system.worker({"DTQ_WORKER_METRICS_PORT": str(self.port), **(settings or {})})

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://{LOOPBACK}:{self.port}{path}", timeout=PROBE_S)

    def scraped(self) -> Scraped:
        return Scraped(self.get("/metrics").text)

    def lag(self) -> float:
        return self.scraped().value("dtq_event_loop_lag_seconds") or 0


def lines_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def test_workers_and_api_are_scraped_side_by_side(system: System) -> None:
    workers = [Metered(system), Metered(system)]
    api = system.api()
    for _ in range(10):
        body = {"task_type": "brief", "payload": {"fails": 1}}
        assert 202 == api.http.post("/api/v1/tasks", json=body).status_code

    def of_api() -> Scraped:
        return Scraped(api.http.get("/metrics").text)

    everything = [*(worker.scraped for worker in workers), of_api]

    wait_until(
        lambda: summed([scrape() for scrape in everything], "dtq_tasks_completed_total") == 10,
        within=WITHIN_S,
        what="ten tasks have ended",
    )

    *shown, last = [scrape() for scrape in everything]
    assert (10, 20, 10) == tuple(
        summed([*shown, last], f"dtq_tasks_{name}_total") for name in ("submitted", "started", "retried")
    )
    for one in shown:
        assert {metric.name: str(metric.kind) for metric in METRICS if Role.WORKER in metric.roles} == one.kinds
        assert one.value("dtq_redis_operations_total", operation="fetch", result="ok")
    assert 2 == last.value("dtq_workers_active")
    assert last.value("dtq_redis_operations_total", operation="admit", result="ok")


def test_a_worker_answers_probes_while_a_handler_blocks_its_loop(system: System) -> None:
    metered = Metered(system, JSON_LOGS)
    (task_id,) = system.create(a_task("block_loop", payload={"seconds": BLOCKED_S}))
    system.started(task_id)

    wait_until(lambda: metered.lag() > 1, within=BLOCKED_S, what="a lag is shown")
    assert {"status": "ok"} == metered.get("/health").json()
    assert 1 == metered.scraped().value("dtq_worker_inflight", worker_id=metered.worker.worker_id)
    assert not system.task(task_id).is_terminal

    system.ended(task_id)
    wait_until(lambda: "event_loop_lag" in metered.worker.log, within=WITHIN_S, what="the lag is logged")
    (line,) = [line for line in lines_of(metered.worker.log) if line["event"] == "event_loop_lag"]
    assert BLOCKED_S - 1 < line["seconds"] < BLOCKED_S + WITHIN_S


def test_while_redis_is_away_processes_tell_what_they_counted(own_system: System) -> None:
    system = own_system
    metered, api = Metered(system), system.api()
    api.http.post("/api/v1/tasks", json={"task_type": "echo", "payload": {}})
    wait_until(
        lambda: summed([metered.scraped()], "dtq_tasks_succeeded_total") == 1, within=WITHIN_S, what="a task has ended"
    )
    system.server.stop()
    wait_until(lambda: not api.answers("/ready"), within=WITHIN_S, what="the API notices")

    def shown_by_api() -> Scraped:
        answer = api.http.get("/metrics")
        assert 200 == answer.status_code
        return Scraped(answer.text)

    wait_until(lambda: not shown_by_api().of("dtq_dlq_depth"), within=WITHIN_S, what="old gauges are gone")
    assert 1 == summed([shown_by_api()], "dtq_tasks_submitted_total")
    assert 200 == metered.get("/health").status_code
    assert 1 == summed([metered.scraped()], "dtq_tasks_succeeded_total")

    system.server.restart()
    wait_until(lambda: shown_by_api().of("dtq_dlq_depth"), within=WITHIN_S, what="the gauges are back")


def test_a_worker_whose_port_is_taken_says_so_and_does_not_start(system: System) -> None:
    first = Metered(system)

    second = system.worker({"DTQ_WORKER_METRICS_PORT": str(first.port)}, ready=False)

    assert 2 == second.exit_code(within=WITHIN_S)
    assert "cannot_listen" in second.log
    assert str(first.port) in second.log


def test_a_worker_serves_nothing_unless_it_is_told_where(system: System) -> None:
    worker = system.worker()

    assert "worker_serves" not in worker.log


def test_the_probe_of_a_worker_that_drains_still_answers(system: System) -> None:
    metered = Metered(system)
    (task_id,) = system.create(a_gated_task("drain"))
    system.started(task_id)

    metered.worker.terminate()
    wait_until(lambda: "draining" in metered.worker.log, within=WITHIN_S, what="the worker drains")

    assert 200 == metered.get("/health").status_code
    system.open_gate("drain")
    assert 0 == metered.worker.exit_code(within=WITHIN_S)


def test_every_line_of_a_log_has_every_field_and_names_its_task(system: System) -> None:
    settings = {**JSON_LOGS, "DTQ_TASK_MODULES": "tests.integration.leaky_handlers"}
    worker, api = system.worker(settings), system.api(settings)
    body = {"task_type": "say", "payload": {}}
    answer = api.http.post("/api/v1/tasks", json=body, headers={"X-Request-ID": "r-7"})
    task_id = answer.json()["task_id"]
    system.ended(task_id)

    lines = [*lines_of(worker.log), *lines_of(api.log)]
    fields = {"timestamp", "level", "service", "worker_id", "task_id", "task_type", "queue", "attempt", "status"}
    assert [] == [line for line in lines if not fields | {"duration_ms", "event_type"} <= set(line)]
    (said,) = [line for line in lines if line["event"] == "said so"]
    assert (task_id, "say", "default", 1, worker.worker_id) == tuple(
        said[name] for name in ("task_id", "task_type", "queue", "attempt", "worker_id")
    )
    assert {"r-7"} == {line.get("request_id") for line in lines_of(api.log) if line["task_id"] == task_id}
