"""What may be wrong with a history: each function plants one thing that its checker must see."""

from collections.abc import Callable
from copy import copy
from datetime import timedelta

from msgspec.structs import replace

from dtq.domain.events import Event
from dtq.domain.outcome import worker_lost
from dtq.domain.status import TERMINAL, TaskStatus
from dtq.domain.task import EntryId, QueueName, TaskId, WorkerId
from tests.simulation.checkers.finding import is_start
from tests.simulation.history import Deed, Entry, Exit, History, Notice, PortCall, Remains, Step, Sweep

S = TaskStatus
GHOST = TaskId("f" * 32)


def step_of(history: History, is_it: Callable[[Step], bool]) -> int:
    return next(number for number, step in enumerate(history.steps) if is_it(step))


def ends_as(status: TaskStatus) -> Callable[[Step], bool]:
    return lambda step: step.before is not None and step.before.status is S.RUNNING and step.after.status is status


def change(history: History, number: int, **after: object) -> None:
    step = history.steps[number]
    history.steps[number] = replace(step, after=replace(step.after, **after))


def remains(history: History, **fields: object) -> None:
    assert history.remains is not None
    history.remains = replace(history.remains, **fields)


def of(history: History) -> Remains:
    assert history.remains is not None
    return history.remains


def created(history: History) -> TaskId:
    return next(one.task_id for one in history.submissions if one.answer == "created" and one.task_id)


def loses_a_task(history: History) -> None:
    remains(history, tasks={key: task for key, task in of(history).tasks.items() if key != created(history)})


def leaves_a_task_alive(history: History) -> None:
    tasks = dict(of(history).tasks)
    tasks[created(history)] = replace(tasks[created(history)], status=S.QUEUED)
    remains(history, tasks=tasks)


def runs_a_ghost(history: History) -> None:
    history.executions.append(replace(history.executions[0], task_id=GHOST))


def makes_what_was_refused(history: History) -> None:
    next(one for one in history.submissions if one.answer == "created").answer = "BrokerUnavailable"


def answers_with_a_ghost(history: History) -> None:
    next(one for one in history.submissions if one.answer == "created").task_id = GHOST


def leaves_an_end(history: History) -> None:
    step = history.steps[step_of(history, ends_as(S.SUCCEEDED))]
    history.steps.append(replace(step, before=step.after, after=replace(step.after, status=S.RUNNING)))


def skips_the_run(history: History) -> None:
    number = step_of(history, lambda step: step.before is not None and step.before.status is S.QUEUED)
    change(history, number, status=S.SUCCEEDED)


def forgets_a_step(history: History) -> None:
    del history.steps[step_of(history, is_start)]


def skips_an_attempt(history: History) -> None:
    number = step_of(history, is_start)
    change(history, number, attempt=history.steps[number].after.attempt + 1)


def starts_what_another_owns(history: History) -> None:
    number = step_of(history, is_start)
    history.steps[number] = replace(history.steps[number], owner=WorkerId("another"))


def runs_twice(history: History) -> None:
    history.executions.append(copy(history.executions[0]))


def runs_unstarted(history: History) -> None:
    history.executions.append(replace(history.executions[0], who="nobody"))


def loses_an_attempt_of_the_living(history: History) -> None:
    change(history, step_of(history, ends_as(S.DEAD_LETTERED)), failure=worker_lost().failure)


def starts_what_is_to_be_cancelled(history: History) -> None:
    number = step_of(history, is_start)
    step = history.steps[number]
    assert step.before is not None
    history.steps[number] = replace(step, before=replace(step.before, cancel_requested=True))


def starts_what_is_too_old(history: History) -> None:
    number = step_of(history, is_start)
    step = history.steps[number]
    assert step.before is not None
    history.steps[number] = replace(step, before=replace(step.before, ttl_at=step.after.started_at))


def starts_early(history: History) -> None:
    number = step_of(history, is_start)
    step = history.steps[number]
    history.steps[number] = replace(step, clock=step.after.available_at - timedelta(milliseconds=2))


def retries_too_late(history: History) -> None:
    number = step_of(history, ends_as(S.RETRYING))
    change(history, number, available_at=history.steps[number].after.available_at + timedelta(seconds=5))


def delays_otherwise(history: History) -> None:
    next(one for one in history.submissions if one.answer == "created").delay += timedelta(seconds=1)


def leaves_a_higher_priority(history: History) -> None:
    history.sweeps.append(Sweep(at=1.0, who="w0.1", taken=(3,), left=(7,)))


def takes_in_any_order(history: History) -> None:
    history.sweeps.append(Sweep(at=1.0, who="w0.1", taken=(3, 7), left=()))


def makes_two_of_a_key(history: History) -> None:
    number = step_of(history, lambda step: step.before is None and step.after.idempotency_key is not None)
    step = history.steps[number]
    history.steps.append(replace(step, after=replace(step.after, task_id=GHOST)))


def forgets_a_key(history: History) -> None:
    remains(history, keys={})


def leaves_an_entry(history: History) -> None:
    remains(history, entries=[Entry(QueueName("default"), 5, EntryId("1-0"), created(history), None)])


def leaves_a_depth(history: History) -> None:
    remains(history, stats={QueueName("default"): (1, 0, 0)})


def tells_twice(history: History) -> None:
    history.told[history.steps[0].after.version] += 1


def tells_what_never_was(history: History) -> None:
    history.told["unknown"] = 1


def tells_nobody(history: History) -> None:
    del history.told[history.steps[0].after.version]


def grows(history: History) -> None:
    remains(history, sizes=dict(of(history).sizes) | {"waiting readers": (1, 0)})


def is_never_quiet(history: History) -> None:
    history.quiet_at = None


def does_not_end(history: History) -> None:
    history.left = ["w0.1"]


def is_in_two_places(history: History) -> None:
    step = history.steps[0]
    history.steps[0] = replace(step, homes=replace(step.homes, entries=2))


def is_nowhere(history: History) -> None:
    step = history.steps[0]
    history.steps[0] = replace(step, homes=replace(step.homes, entries=0, scheduled=0))


def loses_a_letter(history: History) -> None:
    remains(history, letters={})


def has_a_letter_too_many(history: History) -> None:
    remains(history, letters=dict(of(history).letters) | {EntryId("9-0"): GHOST})


def hears_no_end(history: History) -> None:
    ends = {step.after.version for step in history.steps if step.after.status in TERMINAL}
    watch = history.watches[0]
    watch.heard = [one for one in watch.heard if not isinstance(one[1], Event) or one[1].event_id not in ends]


def hears_in_another_order(history: History) -> None:
    history.watches[0].heard.reverse()


def gives_up_waiting(history: History) -> None:
    deed = next(deed for deed in history.deeds if deed.what == "wait" and deed.status in TERMINAL)
    deed.status, deed.ended_at = S.RUNNING, 10_000.0


def waits_too_long(history: History) -> None:
    deed = next(deed for deed in history.deeds if deed.what == "wait" and deed.status in TERMINAL)
    deed.at, deed.ended_at = 0.0, 10_000.0


def records_for_another(history: History) -> None:
    number = step_of(history, ends_as(S.SUCCEEDED))
    history.steps[number] = replace(history.steps[number], who="w9.1")


def records_what_failed_as_done(history: History) -> None:
    task_id = history.steps[step_of(history, ends_as(S.SUCCEEDED))].after.task_id
    for execution in (one for one in history.executions if one.task_id == task_id):
        execution.outcome = "PermanentError"


def records_another_failure(history: History) -> None:
    number = step_of(history, ends_as(S.RETRYING))
    failure = history.steps[number].after.failure
    assert failure is not None
    change(history, number, failure=replace(failure, error_class="KeyError"))


def cancels_unasked(history: History) -> None:
    change(history, step_of(history, ends_as(S.SUCCEEDED)), status=S.CANCELLED)


def gives_up_too_soon(history: History) -> None:
    number = step_of(history, ends_as(S.RETRYING))
    change(history, number, status=S.DEAD_LETTERED)


def mixes_up_results(history: History) -> None:
    remains(history, results=dict.fromkeys(of(history).results, '{"n":99,"attempt":1}'))


def denies_what_was_done(history: History) -> None:
    who, about = history.submissions[0].who, created(history)
    history.deeds.append(Deed(at=1.0, who=who, what="cancel", about=about, answer="TaskTerminal", ended_at=1.1))
    step = history.steps[step_of(history, lambda step: step.after.task_id == about)]
    history.steps.append(replace(step, who=who, after=replace(step.after, status=S.CANCELLED)))


def answers_late(history: History) -> None:
    submission = history.submissions[0]
    submission.ended_at = submission.at + 9.0


def never_answers(history: History) -> None:
    history.submissions[0].ended_at = None


def keeps_a_lost_lease(history: History) -> None:
    call = next(call for call in history.calls if call.method == "extend" and call.answer)
    history.calls.append(PortCall(10_000.0, call.who, call.method, call.arguments, call.named, call.answer))


def ends_by_surprise(history: History) -> None:
    history.exits.append(Exit(1.0, "w0.1", "KeyError: surprise"))


def fails_by_surprise(history: History) -> None:
    history.notices.append(Notice(1.0, "w0.1", "loop_failed", {"loop": "poll", "error": "KeyError"}))
