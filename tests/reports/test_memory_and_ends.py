"""A server without memory, a server that evicts, and API processes that are told to end while clients hold on."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from dtq.domain.status import TaskStatus
from tests.crash.nursery import Nursery
from tests.integration.test_stream import watching
from tests.judged import census
from tests.judged.sizes import QUICK
from tests.judged.system import ROOT, Api, System, a_gated_task
from tests.judged.test_event_stream import clients, url_of
from tests.judged.waiting import wait_until
from tests.reports.scene import see_each_run_once, sized, submission, submitted
from tests.scraped import Scraped, summed
from tests.servers import start_own
from tests.servers.process import LOOPBACK, free_port

ROOM = sized(8, 64) * 1024 * 1024
LARGE = {"text": "x" * 200_000}
GOING_AWAY = 1001
ENDED_WITHIN_S = 10.0
SURELY_FULL = 5
"""How many refusals in a row tell that nothing goes in any more."""


@pytest.fixture
def small_system(nursery: Nursery, tmp_path: Path) -> Iterator[System]:
    """A deployment on a server with little memory, which evicts nothing."""
    with (
        start_own(arguments=["--maxmemory", str(ROOM), "--maxmemory-policy", "noeviction"]) as server,
        System(server, folder=tmp_path, spawn=nursery.spawn) as system,
    ):
        yield system


@pytest.mark.timeout(180)
def test_a_full_server_refuses_new_work_and_lets_the_old_end(small_system: System) -> None:
    """R33."""
    system = small_system
    api, worker = system.api(QUICK), system.worker(QUICK)
    (running,) = system.create(a_gated_task("full"))
    system.started(running)
    assert 200 == api.http.post("/api/v1/queue/default/pause").status_code
    accepted, refusals = [], 0
    for _ in range(ROOM // 200_000 + 10):
        answer = api.http.post("/api/v1/tasks", json=submission("echo", LARGE))
        if answer.status_code == httpx.codes.ACCEPTED:
            accepted.append(answer.json()["task_id"])
        # just below the limit the buffers of a connection decide, which come and go
        refusals = 0 if answer.status_code == httpx.codes.ACCEPTED else refusals + 1
        if refusals == SURELY_FULL:
            break
    stored = len(census.statuses(system))
    refused = api.http.post("/api/v1/tasks", json=submission("echo", LARGE))

    assert httpx.codes.SERVICE_UNAVAILABLE == refused.status_code, refused.text
    assert stored == len(accepted) + 1 == len(census.statuses(system))
    system.open_gate("full")
    see_each_run_once(system, [running])
    assert 200 == api.http.post("/api/v1/queue/default/resume").status_code
    see_each_run_once(system, accepted)
    assert worker.alive()
    system.redis.delete(*(key for key in system.redis.scan_iter(f"{system.prefix}:task:*", count=1000)))
    see_each_run_once(system, [submitted(api, "echo")])


def test_a_server_that_may_evict_tasks_is_not_called_ready(own_system: System) -> None:
    """R33."""
    system = own_system
    system.redis.config_set("maxmemory", str(64 * 1024 * 1024))
    system.redis.config_set("maxmemory-policy", "volatile-lru")
    api, worker = system.api(QUICK, ready=False), system.worker(QUICK)
    wait_until(lambda: api.answers("/health"), within=20, what="the API answers")

    ready = api.http.get("/ready")
    assert httpx.codes.SERVICE_UNAVAILABLE == ready.status_code
    assert "maxmemory-policy" in ready.text
    wait_until(lambda: "maxmemory-policy" in worker.log, within=10, what="the worker warns")

    system.redis.config_set("maxmemory-policy", "noeviction")
    wait_until(lambda: api.answers("/ready"), within=20, what="it is ready once that is mended")


def without_uvloop(folder: Path) -> dict[str, str]:
    """Settings of a process that finds no uvloop."""
    (folder / "hidden").mkdir()
    (folder / "hidden" / "uvloop.py").write_text("raise ImportError('hidden by a test')\n")
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(folder / "hidden"), str(ROOT), os.environ.get("PYTHONPATH"))))
    }


def half_a_request(api: Api) -> socket.socket:
    """A connection that has sent all of a submission but its last byte."""
    body = json.dumps(submission("echo")).encode()
    connection = socket.create_connection((api.http.base_url.host, int(api.http.base_url.port or 0)), timeout=20)
    head = f"POST /api/v1/tasks HTTP/1.1\r\nHost: {api.http.base_url.netloc.decode()}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body[:-1])
    return connection


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_an_api_ends_in_time_though_sockets_are_open_and_a_request_is_half_sent(
    fresh_system: System, tmp_path: Path, sign: signal.Signals, loop: str
) -> None:
    """R40."""
    system = fresh_system
    settings = QUICK | (without_uvloop(tmp_path) if loop == "asyncio" else {})
    api = system.api(settings)
    with clients("silent", 10, url_of(api)), watching(api) as listener, half_a_request(api) as slow:
        os.kill(api.pid, sign)
        with pytest.raises(ConnectionClosed) as closed:
            listener.recv(ENDED_WITHIN_S)
        slow.sendall(b"}")
        answer = slow.recv(65_536)
        assert 0 == api.exit_code(within=ENDED_WITHIN_S)

    assert closed.value.rcvd is not None
    assert GOING_AWAY == closed.value.rcvd.code
    assert answer.startswith(b"HTTP/1.1 202"), answer


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_worker_that_is_told_to_end_by_either_signal_does(fresh_system: System, tmp_path: Path, loop: str) -> None:
    """R40."""
    system = fresh_system
    settings = QUICK | (without_uvloop(tmp_path) if loop == "asyncio" else {})
    for sign in (signal.SIGTERM, signal.SIGINT):
        worker = system.worker(settings)
        os.kill(worker.pid, sign)
        assert 0 == worker.exit_code(within=ENDED_WITHIN_S)


def test_bad_bodies_are_refused_though_everything_is_logged(system: System) -> None:
    """R41: with debug logs in JSON, where others stumbled over the body that they wanted to log."""
    api = system.api(QUICK | {"DTQ_LOG_LEVEL": "DEBUG", "DTQ_LOG_JSON": "true"})
    bodies = [
        b"",
        b"null",
        b"[]",
        b'{"task_type": "echo", "payload": {',
        b'{"task_type": "echo",}',
        b"\xff\xfe",
        b"\x00",
    ]
    before = Scraped(api.http.get("/metrics").text)
    keys = set(system.redis.scan_iter(f"{system.prefix}:*", count=1000))

    for body in bodies:
        answer = api.http.post("/api/v1/tasks", content=body, headers={"Content-Type": "application/json"})
        assert (httpx.codes.BAD_REQUEST, "INVALID_TASK") == (answer.status_code, answer.json()["code"]), body
    large = api.http.post("/api/v1/tasks", json=submission("echo", {"text": "x" * 262_145}))

    assert (httpx.codes.REQUEST_ENTITY_TOO_LARGE, "PAYLOAD_TOO_LARGE") == (large.status_code, large.json()["code"])
    after = Scraped(api.http.get("/metrics").text)
    name = "dtq_ingest_rejected_total"
    assert len(bodies) + 1 == summed([after], name) - summed([before], name)
    assert keys == set(system.redis.scan_iter(f"{system.prefix}:*", count=1000))
    for line in api.log.splitlines():
        assert json.loads(line)["level"] not in {"error", "critical"}, line


class Scraper:
    """Scrapes processes, and sees that no counter of one ever goes back."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[tuple[str, ...], float]] = {}

    def __call__(self, url: str) -> Scraped:
        scraped = Scraped(httpx.get(url, timeout=10).text)
        counters = [name for name, kind in scraped.kinds.items() if kind == "counter"]
        found = {(name, *labels): value for name in counters for labels, value in scraped.of(name).items()}
        assert [] == [key for key, value in self._seen.get(url, {}).items() if found.get(key, 0) < value]
        self._seen[url] = found
        return scraped


def test_what_is_counted_never_goes_back_and_what_has_died_is_counted_no_more(system: System) -> None:
    """R42: two API processes, two workers, one of which is killed and started again."""
    apis = [system.api(QUICK) for _ in range(2)]
    ports = [free_port(), free_port()]
    workers = [system.worker(QUICK | {"DTQ_WORKER_METRICS_PORT": str(port)}) for port in ports]
    targets = [
        *(f"{str(api.http.base_url).rstrip('/')}/metrics" for api in apis),
        *(f"http://{LOOPBACK}:{p}/metrics" for p in ports),
    ]
    scrape = Scraper()
    tasks = [submitted(apis[n % 2], "brief", {"fails": n % 2}) for n in range(sized(40, 400))]
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(lambda: see_ended(system, tasks))
        while not ended.done():
            for url in targets:
                scrape(url)
    ended.result()
    wait_until(
        lambda: summed([scrape(url) for url in targets], "dtq_tasks_completed_total") == len(tasks),
        within=10,
        what="as many are counted as were run",
    )
    gauges = ("dtq_queue_depth", "dtq_queue_pending", "dtq_retry_scheduled", "dtq_dlq_depth", "dtq_workers_active")
    wait_until(
        lambda: all(scrape(targets[0]).of(name) == scrape(targets[1]).of(name) for name in gauges),
        within=10,
        what="both APIs tell the same of the deployment",
    )
    assert 2 == scrape(targets[0]).value("dtq_workers_active")

    workers[0].kill()
    wait_until(lambda: scrape(targets[1]).value("dtq_workers_active") == 1, within=20, what="the dead one is out")
    assert 2 * summed([scrape(targets[0])], "dtq_tasks_submitted_total") == len(tasks)


def see_ended(system: System, tasks: list[str]) -> None:
    """Wait until these tasks have succeeded."""
    for task_id in tasks:
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=60).status
