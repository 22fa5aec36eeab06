"""Lines to Redis that break, lag, lose replies or change their mind: nobody gets another's answer, all go on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Thread

import httpx
import pytest

from dtq.domain.status import TaskStatus
from tests.judged import census
from tests.judged.sizes import QUICK
from tests.judged.system import Api, System, a_gated_task, a_task
from tests.judged.waiting import holds_for, wait_until
from tests.reports.scene import WITHIN_S, count_statuses, see_each_run_once, sized, starts_of, submission, submitted
from tests.servers import start_own
from tests.servers.proxy import Proxy

RESTARTS = sized(2, 5)
IDLE_S = float(sized(5, 60))
STILL = 100
"""For how many looks the connections of a worker that begins must stay as many as they are."""
RESUMED_WITHIN_S = 20.0


def see_every_loop_at_work(system: System, api: Api, *, within: float) -> None:
    """See that work is fetched, promoted, retried and cancelled."""
    plain = submitted(api, "echo")
    delayed = submitted(api, "echo", delay_seconds=0.5)
    retried = submitted(api, "brief", {"fails": 1})
    running = submitted(api, "gated", {"gate": "never"}, timeout_ms=600_000)
    for task_id in (plain, delayed, retried):
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=within).status
    system.started(running)
    assert httpx.codes.CONFLICT == api.http.post(f"/api/v1/tasks/{running}/cancel").status_code
    assert TaskStatus.CANCELLED is system.ended(running, within=within).status


@contextmanager
def load(api: Api) -> Iterator[list[str]]:
    """Submit all the while; what was accepted is in the list."""
    accepted: list[str] = []
    stop = Event()

    def submit() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            body = submission("brief", max_attempts=10, idempotency_key=f"load-{number}")
            answer = api.http.post("/api/v1/tasks", json=body)
            assert answer.status_code in {202, 503}, answer.text
            if answer.status_code == httpx.codes.ACCEPTED:
                accepted.append(answer.json()["task_id"])
            stop.wait(0.02)

    thread = Thread(target=submit)
    thread.start()
    try:
        yield accepted
    finally:
        stop.set()
        thread.join()


@pytest.mark.timeout(300)
def test_every_loop_comes_back_after_restarts_and_cut_connections(durable_system: System) -> None:
    """R16."""
    system = durable_system
    workers = [system.worker(QUICK), system.worker(QUICK)]
    api = system.api(QUICK)
    with load(api) as accepted:
        for _ in range(RESTARTS):
            system.server.kill()
            system.server.restart()
            wait_until(lambda: api.answers("/ready"), within=RESUMED_WITHIN_S, what="the API is ready again")
        for _ in range(sized(5, 20)):
            system.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            holds_for(lambda: True, seconds=0.1, what="it goes on")
        system.redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")

    see_every_loop_at_work(system, api, within=RESUMED_WITHIN_S)
    wait_until(
        lambda: system.count_ended(accepted) == len(accepted), within=WITHIN_S, what="all that was accepted ends"
    )
    assert {TaskStatus.SUCCEEDED} == set(count_statuses(system, accepted))
    assert all(worker.alive() for worker in workers)


@pytest.mark.timeout(300)
def test_no_answer_reaches_another_caller_whatever_is_cancelled_on_its_way(system: System) -> None:
    """R19."""
    with Proxy(system.server.url) as line:
        settings = QUICK | {"DTQ_REDIS_URL": line.url}
        api = system.api(settings)
        worker = system.worker(settings, concurrency=10)
        line.delay(0.05)
        tasks = [
            submitted(api, "gated", {"gate": "never"}, timeout_ms=20 + n * 37 % 180, max_attempts=1)
            for n in range(sized(60, 2000))
        ]
        expected = {task_id: submitted(api, "echo", {"n": n}) for n, task_id in enumerate(tasks[:20])}

        def look(task_id: str) -> None:
            answer = api.http.get(f"/api/v1/tasks/{task_id}")
            assert (httpx.codes.OK, task_id) == (answer.status_code, answer.json()["task_id"]), answer.text

        def hang_up(task_id: str) -> None:
            with httpx.Client(base_url=api.http.base_url, timeout=0.06) as impatient:
                for act in (impatient.get, impatient.post):
                    path = f"/api/v1/tasks/{task_id}" + ("/cancel" if act == impatient.post else "")
                    try:
                        assert act(path).status_code < httpx.codes.INTERNAL_SERVER_ERROR
                    except httpx.TimeoutException:
                        continue

        with ThreadPoolExecutor(20) as pool:
            for one in tasks:
                pool.submit(hang_up, one)
            looks = [pool.submit(look, one) for one in [*tasks, *expected.values()]]
            for future in looks:
                future.result()
        wait_until(lambda: system.count_ended(tasks) == len(tasks), within=240, what="all end")

        assert set(count_statuses(system, tasks)) <= {TaskStatus.DEAD_LETTERED, TaskStatus.CANCELLED}
        see_each_run_once(system, expected.values())
        for n, task_id in enumerate(expected.values()):
            assert {"n": n} == api.http.get(f"/api/v1/tasks/{task_id}").json()["result"]
        assert worker.alive()
        assert "[error]" not in api.log + worker.log


def test_an_idle_worker_neither_throws_nor_connects_again(own_system: System) -> None:
    """S05: no socket timeout can be shorter than the block of an idle worker, for the URL may not name one."""
    system = own_system
    refused = system.worker(QUICK | {"DTQ_REDIS_URL": f"{system.server.url}?socket_timeout=0.3"}, ready=False)
    assert 2 == refused.exit_code(within=20)
    worker = system.worker(QUICK)
    see_each_run_once(system, system.create(a_task("echo")))

    def connections() -> int:
        return int(system.redis.info("stats")["total_connections_received"])

    wait_until(lambda: "TASK_SUCCEEDED" in worker.log, within=10, what="all that was done is told")
    counted: list[int] = []

    def is_still() -> bool:
        counted.append(connections())
        return len(counted) > STILL and len(set(counted[-STILL:])) == 1

    # what a leader does at first opens another one where two of its looks coincide
    wait_until(is_still, within=20, what="all that it needs at first is connected")
    before, lines = connections(), len(worker.log.splitlines())
    holds_for(worker.alive, seconds=IDLE_S, what="the worker lives")

    # one may be opened late, for what is said rarely
    assert connections() - before <= 1
    assert lines == len(worker.log.splitlines()), worker.log
    see_each_run_once(system, system.create(a_task("echo")))


@pytest.mark.timeout(300)
def test_lost_replies_make_nothing_happen_twice(system: System) -> None:
    """S06: every so many replies are lost after the request was carried out, to API and worker."""
    number = sized(100, 1000)
    with Proxy(system.server.url) as line, Proxy(system.server.url) as other_line:
        api = system.api(QUICK | {"DTQ_REDIS_URL": line.url})
        worker = system.worker(QUICK | {"DTQ_REDIS_URL": other_line.url})
        accepted, unclear = [], 0
        for n in range(number):
            if n % 20 == 0:
                line.drop_replies(1, skip=2)
                other_line.drop_replies(1, skip=5)
            answer = api.http.post("/api/v1/tasks", json=submission("brief", idempotency_key=f"lost-{n}"))
            if answer.status_code == httpx.codes.ACCEPTED:
                accepted.append(answer.json()["task_id"])
            else:
                assert httpx.codes.SERVICE_UNAVAILABLE == answer.status_code, answer.text
                unclear += 1
        other_line.heal()
        line.heal()
        wait_until(lambda: system.count_ended(accepted) == len(accepted), within=WITHIN_S, what="all end")

        assert number == len(accepted) + unclear
        found = census.statuses(system)
        assert len(accepted) <= len(found) <= number
        assert {task_id: [1] for task_id in accepted} == starts_of(system, accepted)
        assert {TaskStatus.SUCCEEDED: len(accepted)} == count_statuses(system, accepted)
        assert worker.alive()
    census.see_nothing_left(system)


def test_scripts_that_are_flushed_away_are_back_at_once(own_system: System) -> None:
    """S07."""
    system = own_system
    api, worker = system.api(QUICK), system.worker(QUICK)
    see_every_loop_at_work(system, api, within=RESUMED_WITHIN_S)
    delayed = submitted(api, "echo", delay_seconds=1)

    system.redis.script_flush()
    assert api.answers("/ready")

    see_every_loop_at_work(system, api, within=RESUMED_WITHIN_S)
    see_each_run_once(system, [delayed])
    assert worker.alive()


@pytest.mark.timeout(300)
def test_many_submissions_at_once_wait_for_a_connection_instead_of_failing(system: System) -> None:
    """S14."""
    number = sized(150, 500)
    api = system.api(QUICK)
    system.worker(QUICK, concurrency=200)
    limits = httpx.Limits(max_connections=number)
    with (
        httpx.Client(base_url=api.http.base_url, timeout=60, limits=limits) as http,
        ThreadPoolExecutor(number) as pool,
    ):
        body = submission("brief", {"seconds": 0.2})
        answers = list(pool.map(lambda _: http.post("/api/v1/tasks", json=body), range(number)))

    assert {httpx.codes.ACCEPTED} == {answer.status_code for answer in answers}
    see_each_run_once(system, [answer.json()["task_id"] for answer in answers])


def test_a_task_is_found_from_the_moment_it_was_accepted(system: System) -> None:
    """S11."""
    api, worker = system.api(QUICK), system.worker(QUICK, concurrency=10)
    number = sized(200, 2000)

    def submit_and_look(n: int) -> tuple[str, int]:
        task_id = submitted(api, "echo", {"n": n}, delay_seconds=n % 2)
        return task_id, api.http.get(f"/api/v1/tasks/{task_id}").status_code

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(submit_and_look, range(number)))

    assert {httpx.codes.OK} == {status for _, status in seen}
    see_each_run_once(system, [task_id for task_id, _ in seen])
    assert "[warning]" not in worker.log


@pytest.mark.timeout(120)
def test_a_master_that_became_a_replica_is_an_outage_and_no_fault_of_a_task(own_system: System) -> None:
    """S15."""
    system = own_system
    api, worker = system.api(QUICK), system.worker(QUICK)
    (running,) = system.create(a_gated_task("failover"))
    system.started(running)
    with start_own() as other:
        system.redis.config_set("repl-diskless-sync-delay", 0)
        peer = system.redis.__class__.from_url(other.url, decode_responses=True)
        peer.replicaof("127.0.0.1", system.server.port)
        wait_until(lambda: peer.info("replication").get("master_link_status") == "up", within=20, what="it follows")
        peer.config_set("repl-diskless-sync-delay", 0)
        peer.replicaof("NO", "ONE")
        system.redis.replicaof("127.0.0.1", other.port)
        wait_until(lambda: not api.answers("/ready"), within=20, what="the API says that it is not ready")
        assert 503 == api.http.post("/api/v1/tasks", json=submission("echo")).status_code
        system.open_gate("failover")
        holds_for(worker.alive, seconds=2, what="the worker lives")
        system.redis.replicaof("NO", "ONE")
        peer.close()

    wait_until(lambda: api.answers("/ready"), within=RESUMED_WITHIN_S, what="the API is ready again")
    see_each_run_once(system, [running])
    see_every_loop_at_work(system, api, within=RESUMED_WITHIN_S)
    assert worker.alive()


def test_an_outage_longer_than_any_wait_of_an_idle_worker_is_recovered_from(own_system: System) -> None:
    """bullmq 4585 and bull 890: nothing was running, and the blocking read was the only one under way."""
    system = own_system
    worker = system.worker(QUICK)
    see_each_run_once(system, system.create(a_task("echo")))
    system.server.stop()
    holds_for(worker.alive, seconds=sized(7, 60), what="the worker lives")
    system.server.restart()

    see_each_run_once(system, system.create(a_task("echo")), within=RESUMED_WITHIN_S)
    assert worker.alive()
