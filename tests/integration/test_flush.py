"""Redis forgets everything under a running deployment: what it knew is gone, and new work is taken all the same."""

from dtq.domain.status import TaskStatus
from tests.judged.sizes import QUICK
from tests.judged.system import System, a_gated_task, a_task
from tests.judged.systems import own_system
from tests.judged.waiting import wait_until

__all__ = ["own_system"]


def test_after_a_flush_workers_go_on_by_themselves(own_system: System) -> None:
    system = own_system
    workers = [system.worker(QUICK, concurrency=2), system.worker(QUICK, concurrency=2)]
    api = system.api(QUICK)
    (lost,) = system.create(a_gated_task("flush"))
    system.started(lost)

    system.redis.flushall()
    system.open_gate("flush")
    wait_until(
        lambda: any("result_dropped" in worker.log for worker in workers), within=10, what="the result is dropped"
    )

    plain = api.http.post("/api/v1/tasks", json={"task_type": "echo", "payload": {}}).json()["task_id"]
    delayed, retried = system.create(a_task("echo", delay_seconds=0.2), a_task("brief", payload={"fails": 1}))
    for task_id in (plain, delayed, retried):
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=30).status
    assert 404 == api.http.get(f"/api/v1/tasks/{lost}").status_code
    assert api.answers("/ready")
    assert all(worker.alive() for worker in workers)
    ids = {worker.worker_id for worker in workers}
    wait_until(lambda: ids == system.redis.smembers(system.keys.workers), within=10, what="both show that they live")
