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
from tests.simulation.planting import SHARED, a_copy

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
    load = copy(whole.load)
    load.surprises = []
    return replace(whole, history=a_copy(whole.history), load=load)


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
