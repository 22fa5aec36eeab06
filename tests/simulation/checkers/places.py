"""C7, C12 and C13: where tasks are, and in which order they are taken from there."""

from collections import Counter
from collections.abc import Iterator

from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import place_of
from tests.simulation.checkers.finding import Finding
from tests.simulation.history import History, Homes

EXPECTED = {
    Place.SCHEDULE: Homes(scheduled=1, entries=0, letters=0),
    Place.READY: Homes(scheduled=0, entries=1, letters=0),
    Place.HELD: Homes(scheduled=0, entries=1, letters=0),
    Place.DEAD: Homes(scheduled=0, entries=0, letters=1),
    Place.NOWHERE: Homes(scheduled=0, entries=0, letters=0),
}


def c7_strict_priority(history: History) -> Iterator[Finding]:
    """Nobody takes an entry while one of a higher priority waits."""
    for sweep in history.sweeps:
        if sweep.left:
            yield Finding("C7", None, f"{sweep.who} took {sweep.taken} at {sweep.at:.3f} s and left {sweep.left}")
        if list(sweep.taken) != sorted(sweep.taken, reverse=True):
            yield Finding("C7", None, f"{sweep.who} took {sweep.taken} at {sweep.at:.3f} s in this order")


def c12_one_home(history: History) -> Iterator[Finding]:
    """After each step its task is in the one place that it should be in; steps that stopped half-way are no steps."""
    for step in history.steps:
        task = step.after
        if task.task_id in history.halved or task.task_id in history.purged_letters:
            continue
        if step.homes != EXPECTED[place_of(task)]:
            yield Finding("C12", task.task_id, f"it is {task.status} and in {step.homes}: {step}")


def c13_dead_letters(history: History) -> Iterator[Finding]:
    """Each dead letter that was not discarded or purged is there once, and no other is.

    A step that stops half-way may leave a letter that no record names: of its task one may be too many.
    """
    assert history.remains is not None
    letters = Counter(history.remains.letters.values())
    dead = Counter(
        str(task_id)
        for task_id, task in history.remains.tasks.items()
        if task.status is TaskStatus.DEAD_LETTERED and not task.discarded and task_id not in history.purged_letters
    )
    for task_id in sorted(set(letters) | set(dead)):
        too_many = letters[task_id] - dead[task_id]
        if too_many and (too_many < 0 or task_id not in history.halved):
            yield Finding("C13", task_id, f"it has {letters[task_id]} dead letters, and should have {dead[task_id]}")
