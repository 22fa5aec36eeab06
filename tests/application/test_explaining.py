"""What an explanation asks the broker for, and what it does where that does not answer."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from dtq.adapters.memory import State
from dtq.adapters.memory.workers import MemoryWorkers
from dtq.adapters.system import SystemClock
from dtq.application.explaining import COUNTED, ExplanationService
from dtq.application.workers import WorkerService
from dtq.domain.errors import BrokerRefused, TaskNotFound
from dtq.domain.reasons import ReasonCode
from dtq.domain.standing import Holding, Standing
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId, WorkerId
from dtq.domain.workers import Heartbeat
from dtq.ports.backend import BackendOptions
from tests.factories import TASK_TYPE, WORKER, a_heartbeat, a_task, a_task_id


class Broker:
    """Answers every look with one standing, and notes what was asked."""

    def __init__(self, standing: Standing | None) -> None:
        self._standing = standing
        self.asked: list[object] = []
        self.refuses = False

    async def locate(self, task_id: TaskId, *, count_up_to: int) -> Standing | None:
        self.asked.append((task_id, count_up_to))
        if self.refuses:
            raise BrokerRefused("no")
        return self._standing


class Listening(MemoryWorkers):
    """One worker lives; who is asked for is noted."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.asked: list[WorkerId] = []

    async def known(self) -> Sequence[WorkerId]:
        return [WORKER]

    async def get(self, worker: WorkerId) -> Heartbeat | None:
        self.asked.append(worker)
        return a_heartbeat(last_heartbeat=SystemClock().now(), task_types=(TASK_TYPE,))


def service(broker: Broker) -> tuple[ExplanationService, list[WorkerId]]:
    """The service over *broker*, and the workers that it asks for."""
    clock = SystemClock()
    listening = Listening(State(clock, options=BackendOptions()))
    workers = WorkerService(listening, clock=clock, heartbeat_interval=timedelta(seconds=5))
    return ExplanationService(broker, workers=workers, clock=clock), listening.asked


async def test_a_live_task_is_explained_by_the_workers_there_are() -> None:
    task = a_task()
    broker = Broker(Standing(task=task))
    explaining, workers = service(broker)

    explanation = await explaining.explain(task.task_id)

    assert [ReasonCode.NOTHING] == [reason.code for reason in explanation.reasons]
    assert [(task.task_id, COUNTED)] == broker.asked
    assert [WORKER] == workers


@pytest.mark.parametrize(
    "standing",
    [Standing(task=a_task(status=TaskStatus.SUCCEEDED)), Standing(task=None, unreadable="the record is garbled")],
    ids=["ended", "unreadable"],
)
async def test_who_works_is_not_asked_where_it_does_not_matter(standing: Standing) -> None:
    explaining, workers = service(Broker(standing))

    await explaining.explain(a_task_id())

    assert [] == workers


async def test_what_is_no_id_is_not_looked_up() -> None:
    broker = Broker(None)
    explaining, _ = service(broker)

    with pytest.raises(TaskNotFound):
        await explaining.explain("no id")
    assert [] == broker.asked
    with pytest.raises(TaskNotFound):
        await explaining.explain(a_task_id())
    assert 1 == len(broker.asked)


async def test_a_refusal_of_the_broker_is_passed_on() -> None:
    broker = Broker(None)
    broker.refuses = True
    explaining, _ = service(broker)

    with pytest.raises(BrokerRefused):
        await explaining.explain(a_task_id())


async def test_what_a_worker_left_days_ago_was_not_handed_back() -> None:
    holding = Holding(owner=WorkerId("worker-0000dead"), idle=timedelta(days=2))
    task = a_task()
    explaining, _ = service(Broker(Standing(task=task, holding=holding)))

    explanation = await explaining.explain(task.task_id)

    assert ReasonCode.LOST is explanation.reasons[0].code
