"""What must hold of every run: each checker looks at a history, and yields what is wrong with it.

A checker reads values only, and knows nothing of how they came about: whoever recorded another system's run as a
History, with what it has of it, can have it judged too. What each one needs, beside `terms`:

    C1, C2          submissions, and of C2 steps and executions; C1 remains
    C3, C4, C6      steps, in order, each task's own; C6 submissions
    C5, C15         steps with their owners, executions, faults, exits; C15 remains
    C7, C18         sweeps; the calls of `extend`
    C8 to C10, C13  submissions, steps, remains; C9 told, exits, and the calls that give a sign of life
    C11             quiet_at, left, remains
    C12             steps with their homes
    C14, C16        watches, deeds, submissions, steps; C16 trips
    C17             exits, notices
    C19             calls of the queue, lives, executions, faults
    C20, C21        steps with their owners, deeds, the calls of `pause` and `resume`

Fields that are left empty are seen as nothing having happened, so a recorder without them leaves those checkers out.
"""

from collections.abc import Callable, Iterator
from typing import Final

from tests.simulation.checkers import answers, executions, leases, operators, places, promptness, structures, tasks
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
    operators.c20_purges,
    operators.c21_pauses,
)
"""What holds whatever happens."""

WITHIN_PROMISE: Final[tuple[Checker, ...]] = (
    tasks.c1_conservation,
    structures.c9_accounting,
    structures.c11_recovery,
    places.c12_one_home,
    places.c13_dead_letters,
    promptness.c19_promptness,
)
"""What holds as long as nothing happens that nobody can stand."""


def findings(history: History) -> list[Finding]:
    """Everything that is wrong with a run."""
    checkers = ALWAYS + WITHIN_PROMISE if history.terms.is_within_promise else ALWAYS
    return [finding for checker in checkers for finding in checker(history)]
