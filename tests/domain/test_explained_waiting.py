"""What is said of a task that waits: several reasons at once, their figures, and their words."""

from datetime import timedelta

from msgspec.structs import replace

from dtq.domain.reasons import ReasonCode
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from dtq.domain.workers import WorkerStatus
from tests.domain.explaining import SECOND, a_worker, busy, codes, explained, figures, reason
from tests.domain.factories import NOW, OTHER_WORKER, WORKER, a_task

MAIL = QueueName("mail")


def test_what_keeps_it_most_is_said_first() -> None:
    explanation = explained(
        replace(a_task(), ttl_at=NOW), workers=[busy(task_types=())], paused=True, above=37, before=5
    )

    assert ["ttl_over", "paused", "no_worker_for_type", "all_busy", "ahead", "next: expire"] == codes(explanation)


def test_what_is_ahead_is_counted() -> None:
    explanation = explained(a_task(), above=37, before=5)

    assert ["ahead", "next: wait_for_turn"] == codes(explanation)
    found = reason(explanation, ReasonCode.AHEAD)
    assert "37 ahead of it in higher priorities, 5 in its own" == found.text
    assert ({"above": 37, "before": 5}, ()) == (found.figures, found.about)


def test_a_count_that_stopped_is_a_lower_bound() -> None:
    found = reason(explained(a_task(), before=1000, before_is_whole=False), ReasonCode.AHEAD)

    assert "0 ahead of it in higher priorities, at least 1000 in its own" == found.text
    assert ("before",) == found.about


def test_priorities_that_cannot_be_read_are_not_counted() -> None:
    found = reason(explained(a_task(), above=2, spoiled=(9, 7)), ReasonCode.AHEAD)

    assert found.text.endswith("priorities that cannot be read are not counted: 9, 7")
    assert ("above",) == found.about


def test_busy_workers_are_added_up() -> None:
    workers = [busy(), busy(OTHER_WORKER, concurrency=20, active_tasks=22)]
    workers += [a_worker(queue=MAIL), a_worker(status=WorkerStatus.DRAINING)]

    found = reason(explained(a_task(), workers=workers), ReasonCode.ALL_BUSY)

    assert {"workers": 2, "slots": 30, "taken": 30} == found.figures
    assert ("slots", "taken") == found.about
    assert "by their last heartbeats its workers are busy: 2 workers, 30 of 30 slots taken" == found.text


def test_one_free_slot_is_enough() -> None:
    assert ["nothing", "next: start"] == codes(explained(a_task(), workers=[busy(), busy(active_tasks=9)]))


def test_a_type_that_only_some_know_is_a_warning() -> None:
    workers = [a_worker(), a_worker(OTHER_WORKER, task_types=("other",))]
    explanation = explained(a_task(), workers=workers)

    assert ["nothing", "type_not_everywhere", "next: start"] == codes(explanation)
    assert {"task_type": "echo_task", "workers": 2, "knowing": 1} == figures(
        explanation, ReasonCode.TYPE_NOT_EVERYWHERE
    )


def test_one_worker_is_spoken_of_as_one() -> None:
    ignorant = a_worker(task_types=())
    none, one, several = (
        explained(a_task(), workers=workers).reasons
        for workers in ([ignorant] * 2, [ignorant], [a_worker(), ignorant, ignorant])
    )

    assert "none of the 2 live workers of queue default knows task type echo_task, see `dtq workers`" == none[0].text
    assert "the live worker of queue default does not know task type echo_task, see `dtq workers`" == one[0].text
    assert "2 of the 3 live workers of its queue do not know" in several[1].text
    assert "1 of the 2 live workers of its queue does not know" in (
        explained(a_task(), workers=[a_worker(), ignorant]).reasons[1].text
    )


def test_what_is_promised_of_a_paused_queue_depends_on_its_workers() -> None:
    nobody, ignorant = (explained(a_task(), workers=found, paused=True) for found in ([], [a_worker(task_types=())]))

    assert "once the queue is resumed and a worker serves it, it starts when its turn comes" == nobody.next.text
    assert "once the queue is resumed, the worker that takes it ends it as UnknownTaskType" in ignorant.next.text
    assert ["next: resume"] * 2 == [codes(one)[-1] for one in (nobody, ignorant)]


def test_a_delayed_task_says_what_keeps_it_after_its_delay() -> None:
    task = replace(a_task(TaskStatus.PENDING), available_at=NOW + 12 * SECOND)
    elsewhere = [a_worker(queue=MAIL)]

    assert explained(task, paused=True).next.text.endswith("where it waits until the queue is resumed")
    assert explained(task, workers=elsewhere).next.text.endswith("where it waits until the queue has a worker")
    both = explained(task, workers=elsewhere, paused=True)
    assert both.next.text.endswith("where it waits until the queue is resumed and has a worker")
    assert explained(task).next.text.endswith("where it waits for its turn")
    due = explained(a_task(TaskStatus.PENDING), workers=[], paused=True)
    assert due.next.text.endswith("moves it to its queue, where it waits until the queue is resumed and has a worker")


def test_a_type_that_only_those_know_who_drain_is_known_by_nobody() -> None:
    workers = [a_worker(status=WorkerStatus.DRAINING), a_worker(OTHER_WORKER, task_types=("other",))]

    assert ["no_worker_for_type", "next: fail_unknown_type"] == codes(explained(a_task(), workers=workers))


def test_nobody_is_told_from_those_who_serve_other_queues() -> None:
    here = figures(explained(a_task(), workers=[a_worker(queue=MAIL)]), ReasonCode.NO_WORKER)

    assert {"queue": "default", "live_workers": 1} == here


def test_those_who_drain_or_begin_are_counted() -> None:
    drains, begins = a_worker(status=WorkerStatus.DRAINING), a_worker(status=WorkerStatus.STARTING)

    both = figures(explained(a_task(), workers=[drains, drains, begins]), ReasonCode.WORKERS_STARTING)

    assert {"queue": "default", "draining": 2, "starting": 1} == both


def test_a_delay_has_its_end() -> None:
    task = replace(a_task(TaskStatus.PENDING), available_at=NOW + 12 * SECOND)
    found = reason(explained(task), ReasonCode.DELAYED)

    assert "it may start at 2026-11-29 12:05:12Z, in 12 s" == found.text
    assert {"due_at": task.available_at, "due_in_s": 12.0} == found.figures


def test_a_retry_says_which_attempt_and_why() -> None:
    task = replace(a_task(TaskStatus.RETRYING), available_at=NOW + 3 * SECOND)
    found = reason(explained(task), ReasonCode.RETRY)

    expected = "it may start at 2026-11-29 12:05:03Z, in 3.0 s, as attempt 2 of 3; the last one failed with ValueError"
    assert expected == found.text
    assert {
        "due_at": task.available_at,
        "due_in_s": 3.0,
        "attempt": 2,
        "max_attempts": 3,
        "error_class": "ValueError",
    } == found.figures


def test_a_task_on_loan_is_told_from_one_that_nobody_has_come_to() -> None:
    task = replace(a_task(TaskStatus.PENDING), available_at=NOW - 3 * SECOND)
    texts = [reason(explained(task, on_loan=loan), ReasonCode.DUE).text for loan in (True, False)]

    assert [
        "it has been due for 3.0 s; the leader has taken it up",
        "it has been due for 3.0 s; the leader has not come to it yet",
    ] == texts
    assert {"due_at": task.available_at, "due_since_s": 3.0} == figures(explained(task), ReasonCode.DUE)


def test_a_task_is_due_at_its_moment() -> None:
    assert "due" == codes(explained(replace(a_task(TaskStatus.PENDING), available_at=NOW)))[0]


def test_a_task_that_is_long_due_is_not_promised_the_next_second() -> None:
    recent, old = (
        explained(replace(a_task(TaskStatus.PENDING), available_at=NOW - late)).next.text
        for late in (30 * SECOND, 31 * SECOND)
    )

    assert recent.startswith("within about a second")
    assert old.startswith("after what else is due, or once a worker leads (see `dtq doctor`), the leader moves it to")


def test_a_task_that_is_scheduled_at_another_time_has_to_be_mended() -> None:
    task = replace(a_task(TaskStatus.RETRYING), available_at=NOW + SECOND)
    explanation = explained(task, due=NOW + timedelta(days=365))

    assert ["retry", "next: mend"] == codes(explanation)
    assert "and the schedule has it at 2027-" in explanation.next.text
    assert ["retry", "next: move_when_due"] == codes(explained(task, due=task.available_at))
    assert ["due", "next: mend"] == codes(
        explained(replace(task, available_at=NOW), on_loan=True, claimed_at=NOW + timedelta(hours=1))
    )


def test_a_delay_beyond_its_time_to_live_ends_as_expired() -> None:
    task = replace(a_task(TaskStatus.PENDING), available_at=NOW + SECOND)

    for ttl_at, expected in ((task.available_at, "next: expire"), (NOW + 2 * SECOND, "next: move_when_due")):
        assert ["delayed", expected] == codes(explained(replace(task, ttl_at=ttl_at)))


def test_a_retry_does_not_expire() -> None:
    task = replace(a_task(TaskStatus.RETRYING), available_at=NOW + SECOND, ttl_at=NOW)

    assert ["retry", "next: move_when_due"] == codes(explained(task))


def test_a_time_to_live_that_runs_is_told() -> None:
    task = replace(a_task(), ttl_at=NOW + timedelta(minutes=3))

    assert explained(task, paused=True).next.text == (
        "once the queue is resumed, it starts when its turn comes; "
        "not started by 2026-11-29 12:08:00Z, in 3 min, it expires"
    )
    assert "expires" not in explained(task).next.text


def test_a_worker_of_another_queue_may_lead() -> None:
    assert "due" == codes(explained(a_task(TaskStatus.PENDING), workers=[a_worker(WORKER, queue=MAIL)]))[0]
