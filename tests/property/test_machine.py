"""Random histories on every adapter of the contract suite, with the pure model beside it.

After each step the adapter holds exactly what the model holds, and the invariants of ARCHITECTURE.md hold. At the end
everything is allowed to settle: with a worker alive and nothing paused, every task becomes final.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dtq.domain import lifecycle
from dtq.domain.events import EventType
from dtq.domain.idempotency import state_of
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, WorkerId
from dtq.ports.backend import BackendOptions
from tests.contract.comparison import assert_is_a_path, assert_lawful, assert_placed, assert_same
from tests.contract.conftest import open_harness
from tests.contract.driver import Driver
from tests.contract.harness import OpenHarness
from tests.contract.recording import Recording, recording
from tests.contract.settling import assert_settled, settle
from tests.contract.steps import PEER, VISIBILITY, key_record, now, seconds
from tests.factories import OPERATOR, QUEUE, WORKER, a_fault, a_success, a_token

__all__ = ["open_harness"]

E, S = EventType, TaskStatus
T = TypeVar("T")
KEYS: Final = ("a", "b")
ACCIDENTS: Final = ("duplicate", "evict", "orphan", "lose_groups", "purge", "empty_queue", "purge_dead_letters")
RECENT: Final = 5
ANY: Final = st.integers(min_value=0, max_value=10_000)
OUTCOMES: Final = st.sampled_from([a_success(), a_fault(), a_fault(), a_fault(retryable=False)])
WORKERS: Final = st.sampled_from([WORKER, PEER])


def pick(values: Sequence[T], index: int) -> T:
    """One of the last few of *values*: what is younger is likelier to matter still."""
    recent = values[-RECENT:]
    return recent[index % len(recent)]


class Histories(RuleBasedStateMachine):
    """Two workers, a leader, an operator and accidents, on one queue."""

    def __init__(self, open_adapter: OpenHarness) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._opened = open_adapter(options=BackendOptions())
        harness = self.do(self._opened.__aenter__())
        self._recording = recording(harness)
        self.record: Recording = self.do(self._recording.__aenter__())
        self.driver = Driver(harness)
        self.model = self.driver.model
        self.do(harness.backend.queues.register(QUEUE))

    def do(self, act: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(act)

    def task(self, index: int) -> Task:
        return pick(list(self.model.tasks.values()), index)

    def take_turn(self, values: list[T], index: int) -> T:
        """Pick one and move it back, so that what was not acted on yet is likelier to be next."""
        chosen = pick(values, index)
        values.remove(chosen)
        values.insert(0, chosen)
        return chosen

    @rule(
        priority=st.sampled_from([9, 5, 0]),
        delay=st.sampled_from([0, 0, 15]),
        key=st.sampled_from([None, None, *KEYS]),
        max_attempts=st.integers(1, 3),
        ttl=st.sampled_from([None, None, 25]),
    )
    def submit(self, priority: int, delay: int, key: str | None, max_attempts: int, ttl: int | None) -> None:
        self.do(
            self.driver.submit(
                priority=priority,
                delay=seconds(delay),
                idempotency_key=key,
                max_attempts=max_attempts,
                ttl=None if ttl is None else seconds(ttl),
            )
        )

    @initialize(priorities=st.lists(st.sampled_from([9, 5, 0]), min_size=1, max_size=4))
    def begin(self, priorities: list[int]) -> None:
        for priority in priorities:
            self.do(self.driver.submit(priority=priority, max_attempts=2))

    @rule(
        worker=WORKERS,
        limit=st.integers(1, 3),
        offers=st.integers(0, 2),
        reaps=st.booleans(),
        finishes=st.booleans(),
        outcome=OUTCOMES,
    )
    def work(self, worker: WorkerId, limit: int, offers: int, outcome: Any, *, reaps: bool, finishes: bool) -> None:
        """Fetch and start as a worker does, and let one execution end."""
        known = len(self.driver.deliveries)
        idle = VISIBILITY if reaps else None
        self.do(self.driver.fetch(worker, limit=limit, reap_idle=idle, offers=offers))
        for owner, delivery in self.driver.deliveries[known:]:
            self.do(self.driver.start(owner, delivery, loses_reply=False))
        if finishes and self.driver.executions:
            _, task = self.take_turn(self.driver.executions, -1)
            self.do(self.driver.finish(task, outcome, loses_reply=False))

    @rule(worker=WORKERS, limit=st.integers(1, 4), reaps=st.booleans())
    def fetch(self, worker: WorkerId, limit: int, *, reaps: bool) -> None:
        self.do(self.driver.fetch(worker, limit=limit, reap_idle=VISIBILITY if reaps else None))

    @precondition(lambda self: self.driver.deliveries)
    @rule(worker=WORKERS, index=ANY)
    def stall_and_be_reaped(self, worker: WorkerId, index: int) -> None:
        """Let everybody fall silent, a peer take over, and one who was silent go on."""
        self.do(self.driver.pass_time(seconds(40)))
        self.do(self.driver.fetch(worker, limit=3, reap_idle=VISIBILITY))
        self.do(self.driver.start(*self.take_turn(self.driver.deliveries, index), loses_reply=False))

    @precondition(lambda self: self.driver.deliveries)
    @rule(index=ANY, loses_reply=st.booleans())
    def start(self, index: int, *, loses_reply: bool) -> None:
        worker, delivery = self.take_turn(self.driver.deliveries, index)
        self.do(self.driver.start(worker, delivery, loses_reply=loses_reply))

    @precondition(lambda self: self.driver.executions)
    @rule(index=ANY, outcome=OUTCOMES, limit=st.integers(0, 3))
    def finish_and_fetch(self, index: int, outcome: Any, limit: int) -> None:
        worker, task = self.take_turn(self.driver.executions, index)
        self.do(self.driver.finish_and_fetch(worker, task, outcome, limit=limit))

    @precondition(lambda self: self.driver.executions)
    @rule(index=ANY, outcome=OUTCOMES, loses_reply=st.booleans())
    def finish(self, index: int, outcome: Any, *, loses_reply: bool) -> None:
        _, task = self.take_turn(self.driver.executions, index)
        self.do(self.driver.finish(task, outcome, loses_reply=loses_reply))

    @precondition(lambda self: self.driver.executions)
    @rule(index=ANY)
    def extend(self, index: int) -> None:
        self.do(self.driver.extend(*pick(self.driver.executions, index)))

    @precondition(lambda self: self.driver.deliveries)
    @rule(index=ANY)
    def release(self, index: int) -> None:
        worker, delivery = pick(self.driver.deliveries, index)
        self.do(self.driver.release(worker, [delivery]))

    @rule(limit=st.integers(1, 5))
    def take_due(self, limit: int) -> None:
        self.do(self.driver.take_due(limit=limit))

    @precondition(lambda self: self.driver.taken)
    @rule(index=ANY)
    def promote(self, index: int) -> None:
        """Promote what was taken on loan, however long ago, or forget it."""
        one = pick(self.driver.taken, index)
        moment = now(self.driver.harness)
        change = lifecycle.promote(one, now=moment, token=a_token()) if isinstance(one, Task) else None
        if not self.do(self.driver.commit(change)) and change is None:
            self.do(self.driver.forget(one))

    @rule()
    def return_stale_claims(self) -> None:
        self.do(self.driver.return_stale())

    @precondition(lambda self: self.model.tasks)
    @rule(index=ANY)
    def cancel(self, index: int) -> None:
        moment = now(self.driver.harness)
        self.do(self.driver.commit(lifecycle.cancel(self.task(index), now=moment, token=a_token(), by=OPERATOR)))

    @precondition(lambda self: self.model.letters)
    @rule(index=ANY, discards=st.booleans())
    def act_on_dead_letter(self, index: int, *, discards: bool) -> None:
        task_id = pick(list(self.model.letters.values()), index)
        letter = self.do(self.driver.harness.backend.dead_letters.get(task_id))
        if letter is None:
            return
        assert letter.task is not None
        act = lifecycle.discard if discards else lifecycle.requeue
        self.do(self.driver.commit(act(letter.task, now=now(self.driver.harness), token=a_token(), by=OPERATOR)))

    @rule(is_paused=st.sampled_from([False, False, True]))
    def pause(self, *, is_paused: bool) -> None:
        self.do(self.driver.pause(is_paused=is_paused))

    @rule(by=st.sampled_from([10, 40]))
    def pass_time(self, by: int) -> None:
        self.do(self.driver.pass_time(seconds(by)))

    @precondition(lambda self: self.driver.sent)
    @rule(index=ANY)
    def repeat(self, index: int) -> None:
        self.do(self.driver.repeat(pick(self.driver.sent, index)))

    @precondition(lambda self: self.model.tasks)
    @rule(index=ANY, accident=st.sampled_from(ACCIDENTS))
    def suffer(self, index: int, accident: str) -> None:
        match accident:
            case "empty_queue":
                self.empty_queue()
            case "purge":
                moment = now(self.driver.harness)
                self.do(self.driver.commit(lifecycle.purge(self.task(index), now=moment, token=a_token())))
            case "purge_dead_letters":
                self.do(self.driver.purge_dead_letters())
            case "lose_groups":
                self.do(self.driver.lose_groups())
            case _:
                self.do(getattr(self.driver, accident)(self.task(index)))

    def empty_queue(self) -> None:
        moment = now(self.driver.harness)
        self.do(self.driver.empty_queue(lambda task: lifecycle.purge(task, now=moment, token=a_token())))

    @rule()
    def rehome_strays(self) -> None:
        moment = now(self.driver.harness)
        self.do(self.driver.rehome(lambda task: lifecycle.rehome(task, now=moment, token=a_token())))

    @invariant()
    def the_adapter_holds_what_the_model_holds(self) -> None:
        self.do(assert_same(self.driver.harness, self.model, keys=KEYS))

    @invariant()
    def every_task_is_where_its_status_says_and_nowhere_else(self) -> None:
        assert_placed(self.model, except_for=self.driver.harmed)

    @invariant()
    def every_task_obeys_the_rules(self) -> None:
        assert_lawful(self.model)

    def teardown(self) -> None:
        try:
            self._come_to_rest()
        finally:
            self.do(self._recording.__aexit__(None, None, None))
            unbounded = self.do(self.driver.harness.unbounded())
            self.do(self._opened.__aexit__(None, None, None))
            self._runner.close()
        assert [] == list(unbounded)

    def _come_to_rest(self) -> None:
        harness = self.driver.harness
        self.do(self.driver.pause(is_paused=False))
        self.do(settle(harness))
        self.do(assert_settled(harness, list(self.model.tasks), letters_were_lost=True))
        for key in KEYS:
            record = self.do(key_record(harness, key))
            task = None if record is None else self.do(harness.backend.broker.load(record.task_id))
            assert record is None or task is None or state_of(task.status) is record.state
        for task_id in self.model.tasks.keys() - self.driver.harmed:
            assert_is_a_path(self.do(self.record.types(task_id)))


@pytest.mark.timeout(900)
def test_every_adapter_holds_what_the_model_holds(open_harness: OpenHarness) -> None:
    run_state_machine_as_test(
        lambda: Histories(open_harness),  # type: ignore[arg-type]  # any maker of machines does
        settings=settings(stateful_step_count=50, suppress_health_check=list(HealthCheck)),
    )
