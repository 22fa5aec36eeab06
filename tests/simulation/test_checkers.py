"""A checker that cannot fail checks nothing: each sees what is planted in the history of a run that was fine."""

from collections.abc import Callable
from copy import copy

import pytest
from msgspec.structs import replace

from dtq.domain.status import TERMINAL, TaskStatus
from tests.simulation import mischief, tampering
from tests.simulation.checkers import ALWAYS, WITHIN_PROMISE, findings
from tests.simulation.history import History
from tests.simulation.run import run_seed

S = TaskStatus
NEEDED = {(S.RUNNING, S.RETRYING), (S.RUNNING, S.DEAD_LETTERED), (S.RUNNING, S.SUCCEEDED), (S.DEAD_LETTERED, S.QUEUED)}
TRIES = 500


PLANTED: dict[str, tuple[Callable[[History], None], ...]] = {
    "C1": (tampering.loses_a_task, tampering.leaves_a_task_alive),
    "C2": (tampering.runs_a_ghost, tampering.makes_what_was_refused, tampering.answers_with_a_ghost),
    "C3": (tampering.leaves_an_end,),
    "C4": (tampering.skips_the_run, tampering.forgets_a_step),
    "C5": (
        tampering.skips_an_attempt,
        tampering.runs_twice,
        tampering.starts_what_another_owns,
        tampering.runs_unstarted,
        tampering.loses_an_attempt_of_the_living,
        tampering.starts_what_is_to_be_cancelled,
        tampering.starts_what_is_too_old,
    ),
    "C6": (tampering.starts_early, tampering.retries_too_late, tampering.delays_otherwise),
    "C7": (tampering.leaves_a_higher_priority, tampering.takes_in_any_order),
    "C8": (tampering.makes_two_of_a_key, tampering.forgets_a_key),
    "C9": (
        tampering.leaves_an_entry,
        tampering.leaves_a_depth,
        tampering.tells_twice,
        tampering.tells_what_never_was,
        tampering.tells_nobody,
    ),
    "C10": (tampering.grows,),
    "C11": (tampering.is_never_quiet, tampering.does_not_end),
    "C12": (tampering.is_in_two_places, tampering.is_nowhere),
    "C13": (tampering.loses_a_letter, tampering.has_a_letter_too_many),
    "C14": (
        tampering.hears_no_end,
        tampering.hears_in_another_order,
        tampering.gives_up_waiting,
        tampering.waits_too_long,
        mischief.is_not_told_of_its_deafness,
    ),
    "C15": (
        tampering.records_for_another,
        tampering.records_what_failed_as_done,
        tampering.records_another_failure,
        tampering.cancels_unasked,
        tampering.gives_up_too_soon,
        tampering.mixes_up_results,
        mischief.records_that_it_was_stopped,
    ),
    "C16": (
        tampering.answers_late,
        tampering.never_answers,
        tampering.denies_what_was_done,
        mischief.leaves_a_question_open,
    ),
    "C18": (tampering.keeps_a_lost_lease,),
    "C17": (tampering.ends_by_surprise, tampering.fails_by_surprise, mischief.breaks_the_table),
    "C19": (mischief.keeps_what_it_was_given, mischief.hands_back_to_nobody),
    "C20": (mischief.purges_what_was_read,),
    "C21": (mischief.starts_in_a_paused_queue,),
}


@pytest.fixture(scope="module")
def whole() -> History:
    """A run in which nothing went wrong, and enough went on."""
    for seed in range(TRIES):
        history = run_seed(seed)
        moves = {(step.before.status, step.after.status) for step in history.steps if step.before}
        has_wait = any(deed.what == "wait" and deed.status in TERMINAL for deed in history.deeds)
        has_key = any(one.key and one.answer == "created" for one in history.submissions)
        has_block = any(one.kind == "block" for one in history.executions)
        has_letter = history.remains is not None and bool(history.remains.letters)
        if history.terms.is_calm and moves >= NEEDED and has_wait and has_key and has_letter and not has_block:
            assert not findings(history)
            return history
    raise AssertionError(f"no run of {TRIES} has what these tests need")


@pytest.fixture
def history(whole: History) -> History:
    """A copy that may be tampered with."""
    fields = {name: copy(getattr(whole, name)) for name in whole.__struct_fields__}
    fields |= {
        "executions": [copy(one) for one in whole.executions],
        "submissions": [copy(one) for one in whole.submissions],
        "deeds": [copy(one) for one in whole.deeds],
        "watches": [replace(watch, heard=list(watch.heard)) for watch in whole.watches],
    }
    return History(**fields)


@pytest.mark.parametrize(
    ("checker", "plant"),
    [(checker, plant) for checker, plants in PLANTED.items() for plant in plants],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_checker_sees_what_is_planted(checker: str, plant: Callable[[History], None], history: History) -> None:
    plant(history)

    assert checker in {finding.checker for finding in findings(history)}


def test_each_checker_has_something_planted_for_it() -> None:
    checkers = {one.__name__.split("_")[0].upper() for one in (*ALWAYS, *WITHIN_PROMISE)}

    assert checkers == set(PLANTED)
