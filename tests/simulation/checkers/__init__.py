"""What must hold of every run: each checker looks at a history, and yields what is wrong with it."""

from collections.abc import Callable, Iterator
from typing import Final

from tests.simulation.checkers import answers, executions, leases, places, structures, tasks
from tests.simulation.checkers.finding import Finding
from tests.simulation.history import History

__all__ = ["ALWAYS", "WITHIN_PROMISE", "Finding", "findings"]

Checker = Callable[[History], Iterator[Finding]]

ALWAYS: Final[tuple[Checker, ...]] = (
    tasks.c2_no_phantom,
    tasks.c3_terminal_is_final,
    tasks.c4_only_contract_transitions,
    executions.c5_attempts,
    executions.c6_never_early,
    places.c7_strict_priority,
    tasks.c8_one_task_a_key,
    structures.c10_bounded,
    answers.c14_watchers,
    executions.c15_honest_outcomes,
    answers.c16_answers_in_time,
    structures.c17_no_unknown_faults,
    leases.c18_leases,
)
"""What holds whatever happens."""

WITHIN_PROMISE: Final[tuple[Checker, ...]] = (
    tasks.c1_conservation,
    structures.c9_accounting,
    structures.c11_recovery,
    places.c12_one_home,
    places.c13_dead_letters,
)
"""What holds as long as nothing happens that nobody can stand."""


def findings(history: History) -> list[Finding]:
    """Everything that is wrong with a run."""
    checkers = ALWAYS + WITHIN_PROMISE if history.terms.is_within_promise else ALWAYS
    return [finding for checker in checkers for finding in checker(history)]
