"""With a worker and a leader at work every task ends, within a number of steps that its attempts bound."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.domain.admission import TaskSpec
from dtq.domain.change import Change
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.lifecycle import KEPT_PREVIOUS_ATTEMPTS, promote, requeue, submit
from dtq.domain.outcome import failed
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Task, WorkerId, place_of
from tests.domain.factories import OPERATOR, TASK_ID, a_record, a_spec
from tests.property.shelf import Shelf
from tests.property.strategies import specs

WORKER = WorkerId("worker-1")
POLICY = FailurePolicy()
AGAIN = failed("ValueError", "no", retryable=True)


def submitted(spec: TaskSpec) -> Shelf:
    shelf = Shelf()
    shelf.commit(submit(spec, task_id=TASK_ID, now=shelf.now, token=shelf.token()))
    return shelf


def take_a_step(shelf: Shelf, *, worker_dies: bool) -> None:
    """Do the one thing that is to be done next; a worker that dies leaves its task running."""
    task = shelf.stored
    match place_of(task):
        case Place.SCHEDULE:
            shelf.wait(max(timedelta(), task.available_at - shelf.now))
            shelf.act(lambda task, now, token: promote(task, now=now, token=token))
        case Place.HELD if not worker_dies and task.lease is not None:
            lease = task.lease
            shelf.act(
                lambda task, now, token: finish(
                    task, lease=lease, outcome=AGAIN, now=now, token=token, policy=POLICY, jitter=0
                )
            )
        case _:
            receipt = shelf.deliver(WORKER)
            assert receipt is not None
            claim = Claim(worker=WORKER, lease=shelf.lease(), receipt=receipt)
            shelf.act(lambda task, now, token: start(task, claim=claim, now=now, token=token, policy=POLICY))


@given(spec=specs, deaths=st.sets(st.integers(0, 300)))
def test_a_task_that_never_succeeds_ends_within_its_attempts(spec: TaskSpec, deaths: set[int]) -> None:
    shelf = submitted(spec)

    steps = 0
    while not shelf.stored.is_terminal:
        take_a_step(shelf, worker_dies=steps in deaths)
        steps += 1

    assert steps <= 3 * spec.max_attempts + 1
    starts = [change for change in shelf.changes if change.after.status is TaskStatus.RUNNING]
    assert len(starts) == shelf.stored.attempt <= spec.max_attempts


@given(lives=st.lists(st.integers(1, 12), max_size=6))
def test_of_all_attempts_of_earlier_lives_the_newest_twenty_are_kept(lives: list[int]) -> None:
    shelf = submitted(replace(a_spec(), max_attempts=12))
    total = 0
    for attempts in lives:
        while shelf.stored.attempt < attempts or shelf.stored.status is not TaskStatus.RUNNING:
            take_a_step(shelf, worker_dies=False)
        give_up(shelf)
        shelf.act(lambda task, now, token: requeue(task, now=now, token=token, by=OPERATOR))
        total += attempts

    task = shelf.stored
    kept = min(total, KEPT_PREVIOUS_ATTEMPTS)
    numbers = [number for attempts in lives for number in range(1, attempts + 1)]
    assert numbers[total - kept :] == [record.attempt for record in task.previous_attempts]
    assert total - kept == task.previous_attempts_dropped


def give_up(shelf: Shelf) -> None:
    lease, permanent = shelf.stored.lease, failed("ValueError", "no", retryable=False)
    assert lease is not None
    shelf.act(
        lambda task, now, token: finish(
            task, lease=lease, outcome=permanent, now=now, token=token, policy=POLICY, jitter=0
        )
    )


@given(earlier=st.integers(0, 20), now=st.integers(1, 100), dropped=st.integers(0, 1000))
def test_a_requeue_never_keeps_more_than_twenty(earlier: int, now: int, dropped: int) -> None:
    dead = replace(
        dead_task(),
        previous_attempts=tuple(map(a_record, range(earlier))),
        previous_attempts_dropped=dropped,
        history=tuple(map(a_record, range(now))),
    )

    change = requeue(dead, now=dead.created_at, token=Shelf().token(), by=OPERATOR)

    assert isinstance(change, Change)
    kept = change.after.previous_attempts
    assert len(kept) == min(20, earlier + now)
    assert earlier + now + dropped == len(kept) + change.after.previous_attempts_dropped
    assert kept == (dead.previous_attempts + dead.history)[-20:]


def dead_task() -> Task:
    shelf = submitted(replace(a_spec(), max_attempts=1))
    while not shelf.stored.is_terminal:
        take_a_step(shelf, worker_dies=False)
    return shelf.stored
