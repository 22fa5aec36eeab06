"""What is made of a run: the findings of all checkers, those of the simulation and those for what only life has."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from dtq.domain.status import TaskStatus
from tests.chaos.deployment import VISIBILITY_S
from tests.chaos.processes import FORBIDDEN
from tests.chaos.recovery import recoveries
from tests.chaos.run import CLAIM_S, Outcome
from tests.simulation.checkers import answers, executions, places, structures, tasks
from tests.simulation.checkers.finding import Finding, ended_running, is_start, start_of, steps_by_task
from tests.simulation.history import History, Step

APART_S: Final = 0.05
"""How far the time that a step names may be off: a worker's estimate of the server's clock, in whole milliseconds."""

EARLY: Final = timedelta(milliseconds=50)
OWN: Final = frozenset({"work", "work_in_thread"})
"""The task types whose handlers count what they do."""

REFUSED: Final = frozenset({"Refusal", "BrokerRefused", "UnsuitableBroker"})
"""What a loop fails with whose command is forbidden."""

LATE_S: Final = 5.0
"""How long after it was given back a permission may still be missed: a request that was under way."""

COUNTER: Final = "dtq:demo:counter:chaos"

GOES_ON_WITHIN_S: Final = CLAIM_S + 3 * VISIBILITY_S
"""How long a fault may be felt. Another one may strike meanwhile what had just begun again."""

SPARE_KEYS: Final = 40
"""How many keys there may be that are not a task's: streams, lists, signs of life."""

ALWAYS: Final = (
    tasks.c3_terminal_is_final,
    tasks.c4_only_contract_transitions,
    executions.c6_never_early,
    places.c7_strict_priority,
    tasks.c8_one_task_a_key,
    structures.c10_bounded,
)
WITHIN: Final = (
    tasks.c1_conservation,
    tasks.c2_no_phantom,
    executions.c5_attempts,
    structures.c11_recovery,
    places.c12_one_home,
    places.c13_dead_letters,
)
"""The checkers that the simulation has too. C16 and C18 judge calls of the ports, which nobody sees from outside."""


def findings(outcome: Outcome) -> list[Finding]:
    """Everything that is wrong with a run."""
    history = outcome.history
    is_within = history.terms.is_within_promise
    # beyond what is promised each server's steps stand for themselves, and what its predecessor knew may be gone
    parts = [history] if is_within else [replace(history, steps=steps, wiped_at=0.0) for steps in outcome.eras]
    found = [finding for part in parts for checker in ALWAYS for finding in checker(part)]
    found += (
        *c6_by_the_wall(outcome),
        *c9_counters(outcome),
        *c10_flat(outcome),
        *c16_answers(outcome),
        *c17_known_faults(outcome),
    )
    if is_within:
        found += [finding for checker in WITHIN for finding in checker(history)]
        found += (*c1_acknowledged(outcome), *c5_duplicates(outcome), *c5_counter(outcome), *c11_each_fault(outcome))
        # no watcher hears of every step: C14 judges what must be heard, and C9 what may not
        found += structures.c9_accounting(replace(history, exits=[], terms=replace(history.terms, is_calm=False)))
        found += (*answers.c14_watchers(heard(history)), *executions.c15_honest_outcomes(counted(history)))
    return found


def counted(history: History) -> History:
    """The part of a history whose tasks count what they do; an end comes after its handler has said so."""
    assert history.remains is not None
    own = {task_id: task for task_id, task in history.remains.tasks.items() if task.task_type in OWN}
    steps = [
        replace(step, at=step.at + APART_S) if ended_running(step) else step
        for step in history.steps
        if step.after.task_type in OWN
    ]
    return replace(history, steps=steps, remains=replace(history.remains, tasks=own))


def heard(history: History) -> History:
    """A history for those who ask what a watcher must hear: a step may have been told before the time that it names."""
    return replace(history, steps=[replace(step, at=step.at - APART_S) for step in history.steps])


def lost(outcome: Outcome) -> list[str]:
    """The tasks that were answered for, by whatever answer, and have not ended or are not there."""
    assert outcome.history.remains is not None
    there = outcome.history.remains.tasks
    return [one for one in outcome.load.acknowledged if one not in there or not there[one].is_terminal]


def c1_acknowledged(outcome: Outcome) -> Iterator[Finding]:
    """Each task that any answer named has one terminal status in the end."""
    for task_id in lost(outcome):
        yield Finding("C1", task_id, "an answer named it, and it is lost or has not ended")


def duplicates(history: History) -> list[Step]:
    """The starts that neither a first attempt nor a retry explains: the worker of the attempt before was lost."""
    return [
        step
        for step in history.steps
        if is_start(step) and step.before is not None and step.before.status is TaskStatus.RUNNING
    ]


def most_duplicates(outcome: Outcome) -> int:
    """How many there may be: each fault may cost what one worker runs at once."""
    return len(outcome.strikes) * outcome.history.terms.concurrency


def c5_duplicates(outcome: Outcome) -> Iterator[Finding]:
    """No more attempts are lost than the faults explain."""
    found, most = len(duplicates(outcome.history)), most_duplicates(outcome)
    if found > most:
        yield Finding("C5", None, f"{found} executions are explained by no failure, and {most} may be")


def c5_counter(outcome: Outcome) -> Iterator[Finding]:
    """The counter of the demo was raised at least once for each success, and at most once for each start."""
    steps = [step for step in outcome.history.steps if step.after.task_type == "counter_task"]
    least = len({step.after.task_id for step in steps if step.after.status is TaskStatus.SUCCEEDED})
    most, found = sum(map(is_start, steps)), outcome.counted.get(COUNTER, 0)
    if not least <= found <= most:
        yield Finding("C5", None, f"the counter is {found}, after {least} successes in {most} attempts")


def c6_by_the_wall(outcome: Outcome) -> Iterator[Finding]:
    """No handler begins before its task is due, by the clock of the machine, which is the server's too."""
    by_task = steps_by_task(outcome.history)
    for execution in outcome.history.executions:
        start = start_of(execution, by_task[execution.task_id])
        if start is not None and outcome.begin + execution.at < (start.after.available_at - EARLY).timestamp():
            yield Finding("C6", execution.task_id, f"it was due at {start.after.available_at}: {execution}")


def c9_counters(outcome: Outcome) -> Iterator[Finding]:
    """No counter of a process ever falls."""
    seen: dict[tuple[str, str], float] = {}
    for scrape in outcome.scrapes:
        for series, value in scrape.counters.items():
            before = seen.get((scrape.who, series), 0.0)
            if value < before:
                yield Finding("C9", None, f"{scrape.who} at {scrape.at:.3f} s: {series} is {value}, after {before}")
            seen[scrape.who, series] = value


def c10_flat(outcome: Outcome) -> Iterator[Finding]:
    """There are no more keys than there are tasks, results and idempotency records, and a few beside them."""
    assert outcome.history.remains is not None
    there = len(outcome.history.remains.tasks)
    for kind in ("task", "result", "idempotency"):
        if outcome.keys.get(kind, 0) > there:
            yield Finding("C10", None, f"there are {outcome.keys[kind]} keys of kind {kind} for {there} tasks")
    rest = {kind: number for kind, number in outcome.keys.items() if kind not in {"task", "result", "idempotency"}}
    if sum(rest.values()) > SPARE_KEYS:
        yield Finding("C10", None, f"there are {sum(rest.values())} keys that are no task's: {rest}")


def c11_each_fault(outcome: Outcome) -> Iterator[Finding]:
    """After each fault what it had struck goes on within the time that a lost worker's work and a lost claim take."""
    for strike, seconds in recoveries(outcome):
        if seconds > GOES_ON_WITHIN_S:
            yield Finding("C11", None, f"it took {seconds:.1f} s until all went on after: {strike}")


def c16_answers(outcome: Outcome) -> Iterator[Finding]:
    """No client is answered with what the document does not allow."""
    for surprise in outcome.load.surprises:
        yield Finding("C16", None, f"nobody may be answered with this: {surprise}")


def c17_known_faults(outcome: Outcome) -> Iterator[Finding]:
    """No process ends, and no loop fails, by an error that nobody expects; one whose permission is taken away may."""
    spells = [strike for strike in outcome.strikes if strike.fault.kind in {"deny_worker", "deny_api"}]

    def is_denied(at: float) -> bool:
        return any(strike.at <= at <= (strike.ended_at or at) + LATE_S for strike in spells)

    history = outcome.history
    notices = [one for one in history.notices if one.details.get("error") not in REFUSED or not is_denied(one.at)]
    exits = [one for one in history.exits if one.how != FORBIDDEN or not is_denied(one.at)]
    yield from structures.c17_no_unknown_faults(replace(history, notices=notices, exits=exits))
