"""The checkers can fail on what these runs record: each sees what is planted in a run of real processes."""

from collections.abc import Callable
from copy import copy
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.status import TaskStatus
from tests.chaos.figures import say
from tests.chaos.plan import Fault, Plan, plan_of
from tests.chaos.processes import FORBIDDEN
from tests.chaos.run import Outcome, carry_out
from tests.chaos.strike import EVERYBODY, Strike
from tests.chaos.verdict import COUNTER, findings, lost
from tests.chaos.verdict import OWN as OWN_TYPES
from tests.simulation import tampering
from tests.simulation.checkers.finding import is_start
from tests.simulation.history import Exit, History

pytestmark = pytest.mark.timeout(300)  # of which the one run takes most

SEED = 4
TASKS = 160
SECONDS = 8.0


def loses_what_was_named(outcome: Outcome) -> None:
    for task_id in [one for one in outcome.load.acknowledged if one == tampering.created(outcome.history)]:
        tasks = {key: task for key, task in tampering.of(outcome.history).tasks.items() if key != task_id}
        tampering.remains(outcome.history, tasks=tasks)


def runs_again_and_again(outcome: Outcome) -> None:
    step = next(step for step in outcome.history.steps if is_start(step))
    assert step.before is not None
    outcome.history.steps.append(replace(step, before=replace(step.before, status=TaskStatus.RUNNING)))


def counts_too_much(outcome: Outcome) -> None:
    outcome.counted = {COUNTER: 10_000}


def counts_nothing(outcome: Outcome) -> None:
    outcome.counted = {}


def begins_early(outcome: Outcome) -> None:
    number = tampering.step_of(outcome.history, is_start)
    step = outcome.history.steps[number]
    begun = next(one for one in outcome.history.executions if one.task_id == step.after.task_id)
    later = step.after.available_at + timedelta(seconds=begun.at + 60)
    outcome.history.steps[number] = replace(step, after=replace(step.after, available_at=later), clock=later)


def counts_back(outcome: Outcome) -> None:
    last = outcome.scrapes[-1]
    outcome.scrapes = [*outcome.scrapes, replace(last, counters=dict.fromkeys(last.counters, 0.0))]


def starts_nothing_after_a_fault(outcome: Outcome) -> None:
    fault = Fault(number=0, kind="redis_kill", at=-100.0, lasts=0.0, whom=0)
    outcome.strikes = [Strike(fault=fault, whom=EVERYBODY, at=-100.0, ended_at=-100.0)]


def leaves_keys(outcome: Outcome) -> None:
    outcome.keys = {**outcome.keys, "op": 5000}


def leaves_results(outcome: Outcome) -> None:
    outcome.keys = {**outcome.keys, "result": 5000}


def answers_with_500(outcome: Outcome) -> None:
    outcome.load.surprises.append("500 surprise")


def ends_by_itself(outcome: Outcome) -> None:
    outcome.history.exits.append(Exit(1.0, "w0", "exit code -6"))


def is_forbidden_what_nobody_has_denied(outcome: Outcome) -> None:
    outcome.history.exits.append(Exit(1.0, "w0", FORBIDDEN))


def on_history(plant: Callable[[History], None]) -> Callable[[Outcome], None]:
    def planted(outcome: Outcome) -> None:
        plant(outcome.history)

    planted.__name__ = plant.__name__
    return planted


SHARED: dict[str, tuple[Callable[[History], None], ...]] = {
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
OWN: dict[str, tuple[Callable[[Outcome], None], ...]] = {
    "C1": (loses_what_was_named,),
    "C5": (runs_again_and_again, counts_too_much, counts_nothing),
    "C6": (begins_early,),
    "C9": (counts_back,),
    "C10": (leaves_keys, leaves_results),
    "C11": (starts_nothing_after_a_fault,),
    "C16": (answers_with_500,),
    "C17": (ends_by_itself, is_forbidden_what_nobody_has_denied),
}
PLANTED = [
    *((checker, on_history(plant)) for checker, plants in SHARED.items() for plant in plants),
    *((checker, plant) for checker, plants in OWN.items() for plant in plants),
]


def a_calm_plan() -> Plan:
    plan = plan_of(SEED, tasks=TASKS, workers=3, minutes=None, mode="within")
    # what is planted in the first step of a kind is to be one that is counted
    ordered = sorted(plan.requests, key=lambda one: one.body["task_type"] not in OWN_TYPES)
    requests = tuple(replace(one, at=SECONDS * number / TASKS) for number, one in enumerate(ordered))
    return replace(plan, faults=(), seconds=SECONDS, requests=requests)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A run in which nothing went wrong."""
    outcome = carry_out(a_calm_plan(), folder=tmp_path_factory.mktemp("calm"), tell=say)
    assert [] == findings(outcome)
    assert [] == lost(outcome)
    assert {} == outcome.unknown
    return outcome


@pytest.fixture
def outcome(whole: Outcome) -> Outcome:
    """A copy that may be tampered with."""
    old = whole.history
    fields = {name: copy(getattr(old, name)) for name in old.__struct_fields__}
    fields |= {
        "executions": [copy(one) for one in old.executions],
        "submissions": [copy(one) for one in old.submissions],
        "watches": [replace(watch, heard=list(watch.heard)) for watch in old.watches],
    }
    load = copy(whole.load)
    load.surprises = []
    return replace(whole, history=History(**fields), load=load)


@pytest.mark.parametrize(
    ("checker", "plant"), PLANTED, ids=lambda value: value if isinstance(value, str) else value.__name__
)
def test_a_checker_sees_what_is_planted(checker: str, plant: Callable[[Outcome], None], outcome: Outcome) -> None:
    plant(outcome)

    assert checker in {finding.checker for finding in findings(outcome)}


def test_without_a_fault_nothing_is_done_twice(whole: Outcome) -> None:
    attempts = [(one.task_id, one.attempt) for one in whole.history.executions]
    requeued = {deed.about for deed in whole.history.deeds if deed.what == "requeue"}

    once = [one for one in attempts if one[0] not in requeued]
    assert sorted(set(once)) == sorted(once)


def test_the_servers_file_tells_of_the_very_tasks_that_are_there(whole: Outcome) -> None:
    told = {step.after.task_id: step.after for step in whole.history.steps}

    assert whole.history.remains is not None
    assert told == whole.history.remains.tasks
