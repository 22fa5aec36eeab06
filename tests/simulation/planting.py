"""What is planted in the history of a run that was fine, for each checker that must see it."""

from collections.abc import Callable, Mapping
from copy import copy
from typing import Final

from msgspec.structs import replace

from tests.simulation import mischief, tampering
from tests.simulation.history import History

Plant = Callable[[History], None]

SHARED: Final[Mapping[str, tuple[Plant, ...]]] = {
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
    ),
    "C10": (tampering.grows,),
    "C11": (tampering.is_never_quiet, tampering.does_not_end),
    "C12": (tampering.is_in_two_places, tampering.is_nowhere),
    "C13": (tampering.loses_a_letter, tampering.has_a_letter_too_many),
    "C14": (tampering.hears_no_end, tampering.hears_in_another_order),
    "C15": (
        tampering.records_for_another,
        tampering.records_what_failed_as_done,
        tampering.records_another_failure,
        tampering.cancels_unasked,
        tampering.gives_up_too_soon,
        tampering.mixes_up_results,
    ),
    "C17": (tampering.ends_by_surprise, tampering.fails_by_surprise),
}
"""What any recorder's history shows."""

_OF_THE_SIMULATION: Final[Mapping[str, tuple[Plant, ...]]] = {
    "C9": (tampering.tells_nobody,),
    "C14": (tampering.gives_up_waiting, tampering.waits_too_long, mischief.is_not_told_of_its_deafness),
    "C15": (mischief.records_that_it_was_stopped,),
    "C16": (
        tampering.answers_late,
        tampering.never_answers,
        tampering.denies_what_was_done,
        mischief.leaves_a_question_open,
    ),
    "C17": (mischief.breaks_the_table,),
    "C18": (tampering.keeps_a_lost_lease,),
    "C19": (mischief.keeps_what_it_was_given, mischief.hands_back_to_nobody),
    "C20": (mischief.purges_what_was_read,),
    "C21": (mischief.starts_in_a_paused_queue,),
}

PLANTED: Final[Mapping[str, tuple[Plant, ...]]] = {
    checker: (*SHARED.get(checker, ()), *_OF_THE_SIMULATION.get(checker, ()))
    for checker in (*SHARED, *_OF_THE_SIMULATION)
}
"""What the simulation's history shows."""


def a_copy(history: History) -> History:
    """Return a copy that may be tampered with."""
    fields = {name: copy(getattr(history, name)) for name in history.__struct_fields__}
    fields |= {
        "executions": [copy(one) for one in history.executions],
        "submissions": [copy(one) for one in history.submissions],
        "deeds": [copy(one) for one in history.deeds],
        "watches": [replace(watch, heard=list(watch.heard)) for watch in history.watches],
    }
    return History(**fields)
