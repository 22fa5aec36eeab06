"""C20 and C21: what operators do to a queue is done to all of it that it is meant for, and to nothing else."""

from collections.abc import Iterator, Mapping, Sequence

from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from tests.simulation.checkers.finding import Finding, is_start
from tests.simulation.history import Deed, History, Step


def c20_purges(history: History) -> Iterator[Finding]:
    """A purge cancels what waits, and nothing that a worker has read."""
    purges = [deed for deed in history.deeds if deed.what == "purge"]
    cancels = {(deed.who, deed.about) for deed in history.deeds if deed.what == "cancel"}
    for step in history.steps:
        is_cancel = step.before is not None and step.after.status is TaskStatus.CANCELLED
        if not is_cancel or step.owner is None or (step.who, step.after.task_id) in cancels:
            continue
        if any(_is_by(deed, step) for deed in purges):
            yield Finding("C20", step.after.task_id, f"its entry is {step.owner}'s, and it is purged: {step}")


def _is_by(deed: Deed, step: Step) -> bool:
    # what is on its way when its client gives up, or ends, may be carried out later
    return deed.who == step.who and deed.about == step.after.queue and deed.at <= step.at


def c21_pauses(history: History) -> Iterator[Finding]:
    """Nothing starts in a queue from its pause to its resume."""
    if history.wiped_at is not None:
        return
    pauses = pauses_of(history)
    for step in history.steps:
        spans = pauses.get(step.after.queue, ()) if is_start(step) else ()
        if any(since < step.at < until for since, until in spans):
            yield Finding("C21", step.after.task_id, f"its queue is paused, and it is started: {step}")


def pauses_of(history: History) -> Mapping[QueueName, Sequence[tuple[float, float]]]:
    """From when to when each queue was paused, as the broker saw it."""
    spans: dict[QueueName, list[tuple[float, float]]] = {}
    for call in history.calls:
        if call.method not in {"pause", "resume"}:
            continue
        own = spans.setdefault(call.arguments[0], [])
        is_paused = bool(own) and own[-1][1] == float("inf")
        if call.method == "pause" and not is_paused:
            own.append((call.at, float("inf")))
        elif call.method == "resume" and is_paused:
            own[-1] = (own[-1][0], call.at)
    return spans
