"""What tests do again and again: bring a task somewhere through the domain's deciders and the broker port."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from dtq.domain import lifecycle
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change
from dtq.domain.decision import Acknowledge, Drop
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, QueueName, Receipt, Task, TaskId, Version, WorkerId
from dtq.ports.answers import Admission, Applied, CommitAnswer, CreateAnswer, KeyTaken
from dtq.ports.broker import Delivery, HeldLease
from tests.contract.harness import Harness
from tests.factories import OPERATOR, QUEUE, WORKER, a_fault, a_lease, a_success, a_token, an_admission

PEER: Final = WorkerId("worker-00000002")
LIMITS: Final = BrokerLimits()
POLICY: Final = FailurePolicy()
NO_DEAD_LETTERS: Final = FailurePolicy(dead_letters=False)
VISIBILITY: Final = timedelta(seconds=30)
LEADER: Final = LeaseToken("leader-1")

T = TypeVar("T")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def now(harness: Harness) -> datetime:
    return harness.backend.clock.now()


async def create(harness: Harness, admission: Admission, *, limits: BrokerLimits = LIMITS) -> CreateAnswer:
    (answer,) = await harness.backend.broker.create([admission], limits=limits)
    return answer


async def commit(harness: Harness, change: Change) -> CommitAnswer:
    (answer,) = await harness.backend.broker.commit([change])
    return answer


async def write(harness: Harness, change: Change) -> CommitAnswer | CreateAnswer:
    """Send a change the way that its kind is sent."""
    if change.starts_life:
        return await create(harness, Admission(change=change))
    return await commit(harness, change)


async def make(harness: Harness, change: object) -> Task:
    """Make a change real that must be possible; the task comes back with its payload loaded."""
    assert isinstance(change, Change), change
    answer = await write(harness, change)
    assert isinstance(answer, Applied), answer
    return await stored(harness, answer.task.task_id)


async def stored(harness: Harness, task_id: TaskId) -> Task:
    task = await harness.backend.broker.load(task_id)
    assert task is not None
    return task


async def submit(harness: Harness, **spec: Any) -> Task:
    return await make(harness, an_admission(now=now(harness), **spec).change)


async def take(
    harness: Harness,
    *,
    worker: WorkerId = WORKER,
    queue: QueueName = QUEUE,
    limit: int = 100,
    reap_idle: timedelta | None = None,
    held: Collection[Receipt] = (),
) -> Sequence[Delivery]:
    """Fetch, where neither a pause nor a fault is expected."""
    fetched = await harness.backend.broker.fetch(queue, worker=worker, limit=limit, reap_idle=reap_idle, held=held)
    assert (False, ()) == (fetched.paused, tuple(fetched.faults))
    return fetched.deliveries


async def take_one(harness: Harness, task: Task, *, worker: WorkerId = WORKER) -> Delivery:
    """Fetch everything that is fresh, and pick the delivery of one task."""
    deliveries = await take(harness, worker=worker, queue=task.queue)
    return only(one for one in deliveries if one.fields.get("task_id") == task.task_id)


async def reap_one(harness: Harness, task: Task, *, worker: WorkerId = PEER) -> Delivery:
    """Let the owner of a task's entry be silent for too long, and take it over."""
    await harness.advance(VISIBILITY)
    deliveries = await take(harness, worker=worker, queue=task.queue, reap_idle=VISIBILITY)
    return only(one for one in deliveries if one.fields.get("task_id") == task.task_id)


def decide_start(
    harness: Harness,
    delivery: Delivery,
    *,
    worker: WorkerId = WORKER,
    task: Task | None = None,
    at: datetime | None = None,
    policy: FailurePolicy = POLICY,
    lease: LeaseToken | None = None,
) -> Change | Acknowledge | Drop:
    """Ask the domain what becomes of a delivery."""
    judged = task or delivery.task
    assert judged is not None
    claim = Claim(worker=worker, lease=lease or a_lease(), receipt=delivery.receipt)
    return start(judged, claim=claim, now=at or now(harness), token=a_token(), policy=policy)


def decide_finish(
    harness: Harness, task: Task, outcome: Outcome, *, policy: FailurePolicy = POLICY, jitter: float = 0
) -> Change | Drop:
    """Ask the domain how the running execution of *task* ends it."""
    assert task.lease is not None
    return finish(
        task, lease=task.lease, outcome=outcome, now=now(harness), token=a_token(), policy=policy, jitter=jitter
    )


async def run(harness: Harness, *, worker: WorkerId = WORKER, **spec: Any) -> Task:
    """Submit a task and start it."""
    delivery = await take_one(harness, await submit(harness, **spec), worker=worker)
    return await make(harness, decide_start(harness, delivery, worker=worker))


async def end(harness: Harness, task: Task, outcome: Outcome, *, policy: FailurePolicy = POLICY) -> Task:
    """Finish a running task."""
    return await make(harness, decide_finish(harness, task, outcome, policy=policy))


async def cancel(harness: Harness, task: Task) -> Task:
    return await make(harness, lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR))


async def claim_due(harness: Harness, *, at: datetime | None = None, limit: int = 100) -> Sequence[TaskId | Task]:
    """Take what is due on loan, as the leader."""
    assert await harness.backend.leadership.acquire(LEADER, term=seconds(10))
    return await harness.backend.broker.take_due(now=at or now(harness), leader=LEADER, limit=limit)


async def claim(harness: Harness, task: Task) -> Task:
    """Let time pass until a scheduled task is due, and take it on loan."""
    await harness.advance(max(timedelta(), task.available_at - now(harness)))
    due = [one for one in await claim_due(harness) if isinstance(one, Task)]
    return only(one for one in due if one.task_id == task.task_id)


async def promote(harness: Harness, task: Task) -> Task:
    claimed = await claim(harness, task)
    return await make(harness, lifecycle.promote(claimed, now=now(harness), token=a_token()))


async def bring_to(harness: Harness, status: TaskStatus, **spec: Any) -> Task:
    """Submit a task and lead it into *status*."""
    match status:
        case TaskStatus.PENDING:
            return await submit(harness, **({"delay": seconds(60)} | spec))
        case TaskStatus.QUEUED:
            return await submit(harness, **spec)
        case TaskStatus.CANCELLED:
            return await cancel(harness, await submit(harness, **spec))
        case TaskStatus.EXPIRED:
            delivery = await take_one(harness, await submit(harness, **({"ttl": seconds(1)} | spec)))
            return await make(harness, decide_start(harness, delivery, at=now(harness) + seconds(1)))
        case _:
            return await _lead_on(harness, await run(harness, **spec), status)


async def _lead_on(harness: Harness, running: Task, status: TaskStatus) -> Task:
    match status:
        case TaskStatus.SUCCEEDED:
            return await end(harness, running, a_success())
        case TaskStatus.RETRYING:
            return await end(harness, running, a_fault())
        case TaskStatus.FAILED:
            return await end(harness, running, a_fault(retryable=False), policy=NO_DEAD_LETTERS)
        case TaskStatus.DEAD_LETTERED:
            return await end(harness, running, a_fault(retryable=False))
        case _:
            return running


async def all_strays(harness: Harness, *, limit: int = 10) -> list[Task]:
    """Go through all stored tasks; what is stored beside this may let a later call name one again."""
    cursor, found = "", dict[TaskId, Task]()
    for _ in range(10_000):
        cursor, strays = await harness.backend.upkeep.strays(cursor, limit=limit)
        named = {task.task_id: task for task in strays}
        assert len(strays) == len(named)
        found |= named
        if not cursor:
            return [*found.values()]
    raise AssertionError("the cursor never ends")


def held_lease(task: Task) -> HeldLease:
    """Say which execution of a running task its worker wants to keep."""
    assert task.receipt is not None
    assert task.lease is not None
    return HeldLease(task_id=task.task_id, receipt=task.receipt, lease=task.lease)


async def key_record(harness: Harness, key: str, *, queue: QueueName = QUEUE) -> IdempotencyRecord | None:
    """Read the idempotency record of a key: a submission that no limit admits is answered with it, or with Full."""
    nothing = BrokerLimits(queue_depth=0, scheduled=0, queues=0)
    probe = an_admission(now=now(harness), idempotency_key=key, queue=queue)
    answer = await create(harness, probe, limits=nothing)
    return answer.record if isinstance(answer, KeyTaken) else None


def bare(task: Task) -> Task:
    """A task as it comes back where a port does not promise its payload."""
    return replace(task, payload=None)


def only(values: Iterable[T]) -> T:
    """The one value that there must be."""
    (value,) = values
    return value


def version_of(task: Task | None) -> Version:
    return Version("") if task is None else task.version
