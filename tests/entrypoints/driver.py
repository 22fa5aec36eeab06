"""Moves tasks along as a worker would, one step at a time."""

from datetime import timedelta

from dtq.domain.change import Change
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.outcome import Outcome
from dtq.domain.task import LeaseToken, QueueName, Task, Version, WorkerId
from dtq.ports.answers import Applied
from dtq.ports.backend import Backend

WORKER = WorkerId("worker-00000001")
POLICY = FailurePolicy()


async def start_next(backend: Backend, *, queue: str = "default") -> Task:
    """Start the next task of *queue* and return it."""
    fetch = await backend.broker.fetch(QueueName(queue), worker=WORKER, limit=1, reap_idle=None)
    [delivery] = fetch.deliveries
    assert delivery.task is not None
    claim = Claim(worker=WORKER, lease=LeaseToken(f"lease-{delivery.task.task_id}"), receipt=delivery.receipt)
    token = Version(f"start-{delivery.receipt.entry_id}")
    return await _made(backend, start(delivery.task, claim=claim, now=fetch.now, token=token, policy=POLICY))


async def finish_with(backend: Backend, task: Task, outcome: Outcome) -> Task:
    """End the execution of a running task and return it."""
    assert task.lease is not None
    now = backend.clock.now() + timedelta(milliseconds=5)
    token = Version(f"finish-{task.entry_id}")
    change = finish(task, lease=task.lease, outcome=outcome, now=now, token=token, policy=POLICY, jitter=0.0)
    return await _made(backend, change)


async def _made(backend: Backend, change: object) -> Task:
    assert isinstance(change, Change)
    [answer] = await backend.broker.commit([change])
    assert isinstance(answer, Applied)
    return answer.task
