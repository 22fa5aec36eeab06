"""A checker that cannot fail checks nothing: each sees what is planted in the history of a run that was fine."""

from collections.abc import Callable

import pytest

from dtq.domain.status import TERMINAL, TaskStatus
from tests.simulation.checkers import ALWAYS, WITHIN_PROMISE, findings
from tests.simulation.history import History
from tests.simulation.planting import PLANTED, a_copy
from tests.simulation.run import run_seed

S = TaskStatus
NEEDED = {(S.RUNNING, S.RETRYING), (S.RUNNING, S.DEAD_LETTERED), (S.RUNNING, S.SUCCEEDED), (S.DEAD_LETTERED, S.QUEUED)}
TRIES = 500


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
    return a_copy(whole)


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
