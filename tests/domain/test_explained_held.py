"""What is said of a task whose entry a worker has read: that it runs, or that somebody has to take it over."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.reasons import ReasonCode
from dtq.domain.status import TaskStatus
from tests.domain.explaining import HANDED_BACK, SECOND, a_holding, a_worker, busy, codes, explained, figures, reason
from tests.domain.factories import NOW, OTHER_WORKER, WORKER, a_task

RUNNING = replace(a_task(TaskStatus.RUNNING), started_at=NOW - 12 * SECOND)
BOTH = [a_worker(), a_worker(OTHER_WORKER)]
SILENT = a_holding(idle=20 * SECOND)


def test_a_run_has_its_worker_its_attempt_and_its_times() -> None:
    explanation = explained(RUNNING, workers=BOTH, holding=a_holding(idle=2 * SECOND))

    found = reason(explanation, ReasonCode.RUNNING)
    assert found.text == (
        "attempt 1 of 3 runs on worker-00000001 since 2026-11-29 12:04:48Z; its deadline is in 18 s; "
        "its lease ends in about 28 s unless it is extended"
    )
    assert {
        "worker_id": WORKER,
        "attempt": 1,
        "max_attempts": 3,
        "started_at": RUNNING.started_at,
        "deadline_at": NOW + 18 * SECOND,
        "deadline_in_s": 18.0,
        "lease_left_s": 28.0,
    } == found.figures
    assert ("lease_left_s",) == found.about
    assert "a failure that is worth another attempt is repeated, up to 2 more" in explanation.next.text


def test_a_deadline_that_is_over_is_said_to_be() -> None:
    late = replace(RUNNING, started_at=NOW - 34 * SECOND)

    assert "its deadline is 4.0 s ago" in explained(late, workers=BOTH, holding=a_holding()).reasons[0].text


def test_a_last_attempt_is_said_to_be() -> None:
    last = replace(RUNNING, attempt=3)

    assert explained(last, workers=BOTH, holding=a_holding()).next.text.endswith("it is its last attempt")


def test_a_run_that_is_to_be_canceled() -> None:
    asked = replace(RUNNING, cancel_requested=True)

    assert ["running", "cancel_requested", "next: cancel"] == codes(explained(asked, workers=BOTH, holding=a_holding()))


def test_a_worker_without_a_heartbeat_lives_while_it_extends_its_lease() -> None:
    for idle, expected in ((4.9, "running"), (5.0, "lost")):
        holding = a_holding(idle=timedelta(seconds=idle))
        assert expected == codes(explained(RUNNING, holding=holding))[0]


def test_a_worker_with_a_heartbeat_has_lost_its_lease_after_the_visibility_timeout() -> None:
    kept = explained(RUNNING, workers=BOTH, holding=a_holding(idle=timedelta(seconds=29.9)))
    lost = explained(RUNNING, workers=BOTH, holding=a_holding(idle=timedelta(seconds=30)))

    assert ["running", "lost"] == [codes(kept)[0], codes(lost)[0]]
    assert "lives, and has not extended its lease for 30 s" in lost.reasons[0].text


def test_the_shortest_visibility_timeout_of_its_queue_counts() -> None:
    hasty = a_worker(OTHER_WORKER, visibility_timeout=10 * SECOND)

    assert "lost" == codes(explained(RUNNING, workers=[a_worker(), hasty], holding=a_holding(idle=10 * SECOND)))[0]


def test_a_lost_worker_is_told_with_its_silence() -> None:
    explanation = explained(RUNNING, holding=SILENT)

    assert ["lost", "next: take_over"] == codes(explanation)
    assert explanation.reasons[0].text == (
        "worker worker-00000001, running attempt 1, shows no life, and was last heard of 20 s ago"
    )
    assert {"worker_id": WORKER, "attempt": 1, "idle_s": 20.0} == figures(explanation, ReasonCode.LOST)


@pytest.mark.parametrize(("idle", "within"), [(20, "18 s"), (29, "8.5 s"), (30, "7.5 s"), (300, "7.5 s")], ids=str)
def test_it_is_taken_over_within_the_rest_of_its_lease_and_a_turn(idle: int, within: str) -> None:
    explanation = explained(RUNNING, holding=a_holding(idle=idle * SECOND))

    assert explanation.next.text == (f"a worker takes it over in about {within} at most, and runs it as attempt 2 of 3")


def test_who_has_no_free_slot_takes_nothing_over() -> None:
    workers = [busy(OTHER_WORKER, visibility_timeout=SECOND * 5)]
    explanation = explained(RUNNING, workers=workers, holding=SILENT)

    assert ["lost", "all_busy", "next: take_over"] == codes(explanation)
    assert explanation.next.text.startswith("when a slot comes free")


def test_what_was_handed_back_is_taken_over_at_the_next_turn() -> None:
    explanation = explained(a_task(), holding=a_holding(idle=HANDED_BACK))

    assert "worker worker-00000001 had read it and gave it back" == explanation.reasons[0].text
    assert "a worker takes it over in about 7.5 s at most, and starts it" == explanation.next.text


def test_a_pause_stands_before_that_it_was_handed_back() -> None:
    for workers, once in ((BOTH, "d, a worker takes it over"), ([], "d and a worker serves it, that takes it over")):
        explanation = explained(a_task(), workers=workers, paused=True, holding=a_holding(idle=HANDED_BACK))

        assert ["paused", "handed_back"] == [one for one in codes(explanation) if one in {"paused", "handed_back"}]
        assert f"once the queue is resume{once}, and starts it" == explanation.next.text


def test_a_run_that_was_handed_back() -> None:
    explanation = explained(RUNNING, holding=a_holding(idle=HANDED_BACK))

    assert "worker worker-00000001 was running attempt 1 and gave it back" == explanation.reasons[0].text


def test_what_is_not_long_enough_idle_was_left_and_not_handed_back() -> None:
    assert "lost" == codes(explained(a_task(), holding=a_holding(idle=HANDED_BACK - SECOND)))[0]


@pytest.mark.parametrize(
    ("task", "end"),
    [
        (a_task(), ", and starts it"),
        (RUNNING, ", and runs it as attempt 2 of 3"),
        (replace(RUNNING, attempt=3), ", and gives it up as WorkerLost, since that was its last attempt"),
        (replace(RUNNING, attempt=3, cancel_requested=True), ", and ends it as canceled"),
    ],
    ids=["read", "another attempt", "last attempt", "cancel"],
)
def test_what_becomes_of_it_then(task: object, end: str) -> None:
    assert isinstance(task, type(RUNNING))

    assert explained(task, holding=SILENT).next.text.endswith(end)


def test_a_lost_one_that_is_to_be_canceled() -> None:
    asked = replace(RUNNING, cancel_requested=True)

    assert ["lost", "cancel_requested", "next: take_over"] == codes(explained(asked, holding=SILENT))


def test_a_run_whose_entry_nobody_owns_is_lost() -> None:
    explanation = explained(RUNNING, workers=BOTH)

    assert ["lost", "next: take_over"] == codes(explanation)
    assert "does not own its entry any more" in explanation.reasons[0].text


def test_a_run_whose_entry_another_worker_has_taken_over() -> None:
    explanation = explained(RUNNING, workers=BOTH, holding=a_holding(OTHER_WORKER))

    assert ["read", "next: start"] == codes(explanation)
    assert "worker worker-00000002 has taken it over from worker-00000001" in explanation.reasons[0].text


def test_what_was_read_has_its_reader_and_the_lease() -> None:
    explanation = explained(a_task(), workers=BOTH, holding=a_holding(idle=4 * SECOND))

    assert {"worker_id": WORKER, "lease_left_s": 26.0} == figures(explanation, ReasonCode.READ)
    assert ("lease_left_s",) == reason(explanation, ReasonCode.READ).about


def test_a_stranger_s_name_forges_no_line() -> None:
    explanation = explained(a_task(), holding=a_holding(type(WORKER)("a\nb"), idle=60 * SECOND))

    assert "\n" not in explanation.reasons[0].text
