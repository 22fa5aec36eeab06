"""C14 and C16: whoever watches or waits gets to know, and whoever asks is answered in time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dtq.application.fan_out_tap import Control, ControlKind, Ending
from dtq.domain.events import Event
from dtq.domain.status import TERMINAL, TaskStatus
from dtq.domain.task import TaskId
from tests.simulation.checkers.finding import Finding, steps_by_task
from tests.simulation.history import Deed, History, Step, Watch

ARRIVES_WITHIN = 6.4
"""How many seconds an event may take to a watcher; one that is slow takes it up to another 3 later."""

SLOW = 3.3
TOLD_WITHIN = 1.0
"""After how many seconds a client that keeps up knows that it hears nothing."""

READ_WITHIN = 4.9
"""Before how many seconds whatever is answered with was read."""

ANSWER_WITHIN = 4.5
"""How many seconds a use case may take, which is to answer within some 4."""

AUDIT = 1.5
"""How many more one may take that is refused, and says so in the audit log."""

_STEPS = frozenset({"pause", "resume", "purge", "wait", "requeue", "discard"})
_SLOWING = frozenset({"slow", "slow_all", "server_pause"})
_BREAKS = frozenset({ControlKind.SUBSCRIBED, ControlKind.INTERRUPTED, ControlKind.GAP})


def c14_watchers(history: History) -> Iterator[Finding]:
    """Each watcher hears of each end, in order, or is told that something may be missing, or is let go."""
    ends = [step for step in history.steps if step.after.status in TERMINAL and not step.after.discarded]
    order: dict[str, int] = {step.after.version: number for number, step in enumerate(history.steps)}
    for watch in history.watches:
        if watch.ending not in {"", Ending.SHUTDOWN.value}:
            continue
        # the word of a step that stopped half-way may be what was not written any more
        yield from _missing(watch, [step for step in ends if step.after.task_id not in history.halved])
        yield from _disorder(watch, order)
        yield from _unaware(history, watch)
    yield from _waits(history)


def _denials(history: History) -> Iterator[Finding]:
    asked = Counter((deed.who, deed.what, deed.about) for deed in history.deeds)
    for deed in history.deeds:
        if deed.what != "cancel" or deed.answer != "TaskTerminal" or asked[deed.who, deed.what, deed.about] > 1:
            continue
        earlier = [step for step in history.steps if step.after.task_id == deed.about and step.at <= deed.at]
        if earlier and earlier[-1].after.is_terminal:
            # it had ended, and what was requeued and purged since is another matter
            continue
        for step in history.steps:
            is_its_own = step.after.task_id == deed.about and step.who == deed.who and step.at >= deed.at
            if is_its_own and step.after.status is TaskStatus.CANCELLED:
                yield Finding("C16", deed.about, f"it canceled it itself, and is refused: {deed}")


def _open_questions(history: History) -> Iterator[Finding]:
    """Nobody is told that a task may be there of which no request was sent, as far as anybody noted the requests."""
    if not history.trips:
        return
    for submission in history.submissions:
        if submission.answer != "OutcomeUnknown" or submission.ended_at is None:
            continue
        begun, ended = submission.at, submission.ended_at
        made = [trip for trip in history.trips if trip.who == submission.who and trip.method == "create"]
        # it may also have gone along with what was under way already
        if not any(trip.may_be_sent(ended) and begun - ANSWER_WITHIN <= trip.at <= ended for trip in made):
            yield Finding("C16", None, f"nothing of it was sent, and it is told that it may be there: {submission}")


def _missing(watch: Watch, ends: Sequence[Step]) -> Iterator[Finding]:
    heard = {message.event_id for _, message in watch.heard if isinstance(message, Event)}
    breaks = [
        (at, message.control)
        for at, message in watch.heard
        if isinstance(message, Control) and message.control in _BREAKS
    ]
    late = ARRIVES_WITHIN + SLOW * watch.who.endswith("slow")
    for step in ends:
        before = [control for at, control in breaks if at < step.at]
        # whoever is not subscribed knows it, and so does whoever was interrupted, before or since
        is_told = len(before) < len(breaks) or not before or before[-1] is ControlKind.INTERRUPTED
        if step.after.version not in heard and not is_told and step.at < watch.until - late:
            yield Finding("C14", step.after.task_id, f"{watch.who} was not told of its end: {step}")


def _unaware(history: History, watch: Watch) -> Iterator[Finding]:
    """Whoever hears nothing for a while is told so."""
    name = watch.who.removesuffix("-quick")
    # on a slow line even the end of it takes a while to be seen
    slow_from = min((one.at for one in history.faults if one.what in _SLOWING), default=float("inf"))
    for fault in history.faults:
        if fault.what != "down" or fault.whom != name or fault.at + TOLD_WITHIN >= slow_from:
            continue
        ends = (one.at for one in history.faults if one.whom == name and one.what == "end of down")
        ended_at = next((at for at in ends if at >= fault.at), float("inf"))
        told = [(at, message) for at, message in watch.heard if at <= fault.at + TOLD_WITHIN]
        controls = [one.control for _, one in told if isinstance(one, Control) and one.control in _BREAKS]
        is_long = min(ended_at, watch.until) > fault.at + TOLD_WITHIN
        if is_long and controls and controls[-1] is not ControlKind.INTERRUPTED:
            yield Finding("C14", None, f"{watch.who} hears nothing from {fault.at:.3f} s on, and is not told")


def _disorder(watch: Watch, order: Mapping[str, int]) -> Iterator[Finding]:
    last: dict[TaskId, int] = {}
    for at, message in watch.heard:
        if not isinstance(message, Event) or message.task_id is None or message.event_id not in order:
            continue
        number = order[message.event_id]
        if number <= last.get(message.task_id, -1):
            yield Finding("C14", message.task_id, f"{watch.who} hears {message.type} too late, at {at:.3f} s")
        last[message.task_id] = number


def _waits(history: History) -> Iterator[Finding]:
    by_task = steps_by_task(history)
    for deed in history.deeds:
        if deed.what != "wait" or deed.answer != "done" or deed.ended_at is None:
            continue
        steps = by_task[TaskId(deed.about)]
        before = [step for step in steps if step.at <= deed.ended_at - READ_WITHIN]
        since = [step for step in steps if step.at > deed.ended_at - READ_WITHIN]
        if before and before[-1].after.status in TERMINAL and not since and deed.status not in TERMINAL:
            yield Finding("C14", deed.about, f"it had ended when its waiting was given up: {deed}")
        yield from _late(history, deed, steps)


def _late(history: History, deed: Deed, steps: Sequence[Step]) -> Iterator[Finding]:
    """In calm weather a wait ends as soon as its task does, but for the moment in which the waiter begins to listen."""
    if not history.terms.is_calm or deed.status not in TERMINAL or deed.ended_at is None:
        return
    ended_at = next((step.at for step in steps if step.after.status in TERMINAL and step.at > deed.at + 0.5), None)
    if ended_at is not None and deed.ended_at > ended_at + 0.5:
        yield Finding("C14", deed.about, f"it had ended at {ended_at:.3f} s, long before its waiting did: {deed}")


def c16_answers_in_time(history: History) -> Iterator[Finding]:
    """Each use case answers, in time, and no one is refused because of what it has done itself."""
    yield from _denials(history)
    yield from _open_questions(history)
    for submission in history.submissions:
        if submission.ended_at is None or submission.ended_at - submission.at > ANSWER_WITHIN:
            yield Finding("C16", submission.task_id, f"no answer in time, but at {submission.ended_at}: {submission}")
    for deed in history.deeds:
        if deed.ended_at is None:
            yield Finding("C16", deed.about, f"no answer: {deed}")
        elif deed.what not in _STEPS and deed.ended_at - deed.at > ANSWER_WITHIN + AUDIT:
            yield Finding("C16", deed.about, f"no answer in time, but at {deed.ended_at:.3f} s: {deed}")
