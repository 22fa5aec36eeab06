"""Reports that nobody had named to this project before, found in public trackers, each tried from outside."""

import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from dtq.domain.status import TaskStatus
from tests.integration.test_stream import next_event, watching
from tests.judged import census
from tests.judged.sizes import QUICK
from tests.judged.system import Api, System, a_gated_task, a_task
from tests.judged.test_event_stream import Watch
from tests.judged.waiting import holds_for, wait_until
from tests.reports.scene import WITHIN_S, see_each_run_once, sized, starts_of, submitted

RESUMED_WITHIN_S = 20.0
IDLE_S = float(sized(4, 30))
OPERATIONS_A_SECOND = 60
WAITS = "b"
"""The flag of a client whose command waits."""


def test_a_lost_task_is_run_again_after_its_worker_died_whatever_its_timeout(system: System) -> None:
    """python-arq/arq 402: lost work came back only after the longest timeout that any task of the worker had."""
    victim = system.worker(QUICK)
    brief, long = system.create(a_gated_task("lost") | {"timeout_ms": 5000}, a_gated_task("lost"))
    for task_id in (brief, long):
        system.started(task_id)

    victim.kill()
    system.worker(QUICK)

    for task_id in (brief, long):
        system.started(task_id, attempt=2, within=20)
    system.open_gate("lost", attempt=2)
    for task_id in (brief, long):
        assert TaskStatus.SUCCEEDED is system.ended(task_id).status


def test_an_orderly_restart_of_the_server_brings_nothing_back(durable_system: System) -> None:
    """redis/redis 7105: after a restart the group had gone back, and what was done long ago was delivered again."""
    system = durable_system
    worker = system.worker(QUICK)
    tasks = system.create(*[a_task("echo", priority=n % 10) for n in range(sized(200, 5000))])
    see_each_run_once(system, tasks)

    system.server.restart()
    see_each_run_once(system, system.create(a_task("echo")), within=RESUMED_WITHIN_S)

    see_each_run_once(system, tasks)
    assert worker.alive()
    census.see_nothing_left(system)


@pytest.mark.parametrize("end", ["killed", "told to end", "server restarted"])
def test_delayed_work_outlives_those_who_would_have_run_it(durable_system: System, end: str) -> None:
    """celery/celery 1307 and 3501, celery/kombu 533: delayed tasks went with the worker that had fetched them early."""
    system = durable_system
    worker = system.worker(QUICK)
    tasks = system.create(*[a_task("echo", delay_seconds=3)] * 20)
    see_each_run_once(system, system.create(a_task("echo", delay_seconds=0.2)))

    if end == "killed":
        worker.kill()
        system.worker(QUICK)
    elif end == "told to end":
        worker.terminate()
        assert 0 == worker.exit_code(within=20)
        system.worker(QUICK)
    else:
        system.server.restart()

    see_each_run_once(system, tasks)


def test_a_blocking_read_that_ends_in_an_error_is_begun_again(own_system: System) -> None:
    """taskforcesh/bullmq 648: a failover ended the blocking read with UNBLOCKED, and the loop with it."""
    system = own_system
    worker = system.worker(QUICK)
    for _ in range(5):
        blocked = wait_until(
            lambda: [one["id"] for one in system.redis.client_list() if WAITS in one["flags"]],
            within=10,
            what="the worker waits for work",
        )
        for client in blocked:
            system.redis.execute_command("CLIENT", "UNBLOCK", client, "ERROR")

    see_each_run_once(system, system.create(a_task("echo"), a_task("echo", delay_seconds=0.5)))
    assert worker.alive()


def test_work_that_is_done_takes_no_memory_but_its_record(system: System) -> None:
    """safe-global/safe-decoder-service PR 329: acknowledged entries stayed in the stream for ever."""
    brief = QUICK | {"DTQ_TASK_RETENTION_S": "3", "DTQ_RESULT_RETENTION_S": "1", "DTQ_IDEM_TTL_S": "2"}
    api = system.api(brief)
    system.worker(brief, concurrency=10)
    lasting: list[int] = []
    for cycle in range(3):
        with ThreadPoolExecutor(8) as pool:
            keyed = [f"cycle-{cycle}-{n}" for n in range(sized(100, 1000))]
            tasks = list(pool.map(lambda key: submitted(api, "echo", idempotency_key=key), keyed))
        see_each_run_once(system, tasks)
        wait_until(
            lambda: not any(system.redis.scan_iter(f"{system.prefix}:task:*", count=1000)),
            within=30,
            what="records have gone",
        )
        lasting.append(sum(1 for _ in system.redis.scan_iter(f"{system.prefix}:*", count=1000)))
    census.see_nothing_left(system)
    assert max(lasting) - min(lasting) <= 1, lasting


def hang_up_within_the_handshake(api: Api) -> None:
    """Ask for the event stream, and reset the connection without reading the answer."""
    host, port = api.http.base_url.host, int(api.http.base_url.port or 0)
    with socket.create_connection((host, port), timeout=10) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        head = f"GET /ws/events HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        client.sendall(f"{head}Sec-WebSocket-Key: {'a' * 22}==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())


def test_clients_that_go_within_the_handshake_take_no_place_of_others(system: System) -> None:
    """litestar-org/litestar 4871: who went while it was being subscribed stayed a subscriber for ever."""
    api = system.api(QUICK | {"DTQ_WS_MAX_CLIENTS": "5"})
    watch = Watch(api.pid)
    handles = watch.handles()
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: hang_up_within_the_handshake(api), range(sized(100, 1000))))

    wait_until(lambda: watch.handles() <= handles + 2, within=WITHIN_S, what="their connections are gone")
    with watching(api) as a, watching(api) as b, watching(api) as c, watching(api) as d, watching(api) as e:
        task_id = submitted(api, "echo")
        assert {task_id} == {next_event(client)["task_id"] for client in (a, b, c, d, e)}
    assert "[error]" not in api.log


def test_an_idle_deployment_asks_little_of_its_server(own_system: System) -> None:
    """Bogdanp/dramatiq 691: one idle actor made hundreds of requests a second."""
    system = own_system
    timing = {"DTQ_VISIBILITY_TIMEOUT_S": "30", "DTQ_HEARTBEAT_INTERVAL_S": "5"}
    system.api(timing)
    system.worker(timing)
    see_each_run_once(system, system.create(a_task("echo")))

    def requests() -> int:
        # what scripts do is among them: about nine requests a second make thirty commands
        return int(system.redis.info("stats")["total_commands_processed"])

    holds_for(lambda: True, seconds=2, what="all has come to rest")
    before = requests()
    holds_for(lambda: True, seconds=IDLE_S, what="nobody submits")

    assert requests() - before < OPERATIONS_A_SECOND * IDLE_S


def test_what_a_drain_hands_back_is_there_once(system: System) -> None:
    """sidekiq/sidekiq 897: what ran at the end of a process went back to its queue, and to the retries as well."""
    patient = {"DTQ_VISIBILITY_TIMEOUT_S": "30", "DTQ_HEARTBEAT_INTERVAL_S": "1", "DTQ_DRAIN_TIMEOUT_S": "0.5"}
    worker = system.worker(patient)
    tasks = system.create(*[a_gated_task("back")] * 4)
    for task_id in tasks:
        system.started(task_id)

    worker.terminate()
    worker.exit_code(within=20)
    assert 0 == system.redis.zcard(system.keys.schedule)
    system.open_gate("back", attempt=2)
    system.worker(patient)
    for task_id in tasks:
        assert TaskStatus.SUCCEEDED is system.ended(task_id).status

    assert {task_id: [1, 2] for task_id in tasks} == starts_of(system, tasks)
    census.see_nothing_left(system)


def test_a_task_that_times_out_is_not_called_cancelled(system: System) -> None:
    """xerrors/Yuxi 884: a handler that was stopped at its time limit was shown as cancelled by its user."""
    api = system.api(QUICK)
    system.worker(QUICK)
    task_id = submitted(api, "gated", {"gate": "never"}, timeout_ms=300, max_attempts=2)

    ended = system.ended(task_id)
    shown = api.http.get(f"/api/v1/tasks/{task_id}").json()

    assert (TaskStatus.DEAD_LETTERED, [1, 2]) == (ended.status, system.journal.starts(task_id))
    assert "TimeoutError" == shown["error_class"]
    assert httpx.codes.GONE == api.http.post(f"/api/v1/tasks/{task_id}/cancel").status_code


def test_a_pause_holds_back_whatever_comes_and_outlives_the_server(durable_system: System) -> None:
    """OptimalBits/bull 247 and 1087, cloudamqp/lavinmq 446: recovered and delayed jobs ran; a restart ended it."""
    system = durable_system
    api, victim = system.api(QUICK), system.worker(QUICK)
    (lost,) = system.create(a_gated_task("paused"))
    system.started(lost)
    delayed, queued = system.create(a_task("echo", delay_seconds=1), a_task("echo", delay_seconds=0.5))
    assert httpx.codes.OK == api.http.post("/api/v1/queue/default/pause").status_code
    waiting = submitted(api, "echo")

    victim.kill()
    system.server.restart()
    wait_until(lambda: api.answers("/ready"), within=RESUMED_WITHIN_S, what="the API is ready again")
    system.worker(QUICK)
    tasks = (lost, delayed, queued, waiting)
    quiet = {lost: [1], delayed: [], queued: [], waiting: []}
    wait_until(
        lambda: {system.task(one).status for one in (delayed, queued)} == {TaskStatus.QUEUED},
        within=RESUMED_WITHIN_S,
        what="what was delayed is due",
    )
    holds_for(lambda: quiet == starts_of(system, tasks), seconds=4, what="nothing starts")
    system.open_gate("paused", attempt=2)
    assert httpx.codes.OK == api.http.post("/api/v1/queue/default/resume").status_code

    for task_id in tasks:
        assert TaskStatus.SUCCEEDED is system.ended(task_id).status
    assert {lost: [1, 2], delayed: [1], queued: [1], waiting: [1]} == starts_of(system, tasks)


def test_a_task_can_be_cancelled_while_its_worker_drains(system: System) -> None:
    """celery/celery 8417: once a worker was told to end, nothing that it ran could be revoked any more."""
    api, worker = system.api(QUICK), system.worker(QUICK | {"DTQ_DRAIN_TIMEOUT_S": "60"})
    task_id = submitted(api, "gated", {"gate": "never"}, timeout_ms=600_000)
    system.started(task_id)

    worker.terminate()
    wait_until(lambda: system.status_of(worker) == "draining", within=10, what="it drains")
    assert httpx.codes.CONFLICT == api.http.post(f"/api/v1/tasks/{task_id}/cancel").status_code

    assert TaskStatus.CANCELLED is system.ended(task_id, within=10).status
    assert 0 == worker.exit_code(within=20)


def test_a_result_that_came_during_an_outage_is_kept(durable_system: System) -> None:
    """celery/celery 8588: the task succeeded, its result was gone, and nobody was told."""
    system = durable_system
    api = system.api(QUICK)
    worker = system.worker(QUICK)
    (task_id,) = system.create(a_gated_task("outage"))
    system.started(task_id)

    system.server.kill()
    system.open_gate("outage")
    wait_until(lambda: system.journal.of(task_id, "end"), within=10, what="the handler has ended")
    holds_for(worker.alive, seconds=2, what="the worker lives")
    system.server.restart()

    assert TaskStatus.SUCCEEDED is system.ended(task_id, within=RESUMED_WITHIN_S).status
    assert {"attempt": 1} == api.http.get(f"/api/v1/tasks/{task_id}").json()["result"]
    assert [1] == system.journal.starts(task_id)
