"""More of what may be wrong with a history: who keeps what, what operators reach, and what nobody is told."""

from msgspec.structs import replace

from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, Receipt, WorkerId
from dtq.ports.broker import Delivery, Fetch
from tests.simulation.checkers.finding import is_start
from tests.simulation.history import Deed, Fault, History, Notice, PortCall
from tests.simulation.tampering import change, created, ends_as, step_of

S = TaskStatus


def unheard_of(history: History) -> Receipt:
    return Receipt(history.lives[0].queue, 5, EntryId("1-0"))


def keeps_what_it_was_given(history: History) -> None:
    blocked = {one.who for one in history.executions if one.kind == "block"}
    life = next(life for life in history.lives if life.who not in blocked)
    delivery = Delivery(receipt=unheard_of(history), fields={}, task=None)
    given = Fetch(deliveries=[delivery], now=history.steps[0].clock)
    history.calls.append(PortCall(life.at + 3.0, life.who, "fetch", (life.queue,), {}, given))


def hands_back_to_nobody(history: History) -> None:
    assert history.quiet_at is not None
    receipts = [unheard_of(history)]
    history.calls.append(PortCall(history.quiet_at, "w9.1", "release", (receipts,), {}, 1))


def purges_what_was_read(history: History) -> None:
    step = history.steps[step_of(history, lambda one: one.before is not None and one.before.status is S.QUEUED)]
    history.deeds.append(Deed(at=0.0, who="api9.1", what="purge", about=step.after.queue, answer="done", ended_at=0.1))
    after = replace(step.after, status=S.CANCELLED)
    history.steps.append(replace(step, who="api9.1", owner=WorkerId("another"), after=after))


def starts_in_a_paused_queue(history: History) -> None:
    step = history.steps[step_of(history, is_start)]
    history.calls.append(PortCall(step.at - 0.001, "api0.1", "pause", (step.after.queue,), {}, None))


def is_not_told_of_its_deafness(history: History) -> None:
    history.faults.append(Fault(3.0, "down", "watcher"))


def leaves_a_question_open(history: History) -> None:
    history.submissions[0].answer = "OutcomeUnknown"
    history.trips = [trip for trip in history.trips if trip.method != "create"]


def records_that_it_was_stopped(history: History) -> None:
    number = step_of(history, ends_as(S.RETRYING))
    step = history.steps[number]
    assert step.after.failure is not None
    change(history, number, failure=replace(step.after.failure, error_class="CancelledError"))
    for execution in (one for one in history.executions if one.task_id == step.after.task_id):
        execution.outcome = "CancelledError"


def breaks_the_table(history: History) -> None:
    reason = f"IllegalChange: {created(history)}: running -> queued"
    history.notices.append(Notice(1.0, "w0.1", "records_unreadable", {"entries": 1, "reason": reason}))
