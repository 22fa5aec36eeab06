"""C9 to C11 and C17: nothing is left over, nothing grows, all comes to rest in time, and nobody meets the unknown."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from dtq.domain.workers import Heartbeat
from tests.simulation.checkers.finding import Finding, ended_running, is_start
from tests.simulation.history import History, Step

EXPECTED_ENDS = frozenset({"DRAINED", "WORK_LEFT", "HUNG", "WORKER_ID_IN_USE"})
EXPECTED_FAULTS = frozenset(
    {"BrokerUnavailable", "OutcomeUnknown", "BrokerOutOfMemory", "BrokerBehind", "WorkerReplaced"}
)


def c9_accounting(history: History) -> Iterator[Finding]:
    """What came in is what is there, nothing is left in between, counters only rise, each step is told once."""
    remains = history.remains
    assert remains is not None
    made = Counter(step.after.task_id for step in history.steps if step.before is None)
    for task_id in sorted(set(made) ^ set(remains.tasks)):
        yield Finding("C9", task_id, "it was made and is not there" if task_id in made else "it is there and not made")
    for entry in remains.entries:
        yield Finding("C9", entry.task_id, f"its entry is left: {entry}")
    for task_id in remains.schedule:
        yield Finding("C9", task_id, "it is left in the schedule")
    for queue, figures in remains.stats.items():
        if any(figures):
            yield Finding("C9", None, f"{queue} has depth, pending and scheduled {figures} in the end")
    yield from _counters(history)
    yield from _told(history)


def _counters(history: History) -> Iterator[Finding]:
    if not history.terms.is_calm:
        # one sign of life may overtake another on its way
        return
    seen: dict[tuple[str, datetime], tuple[int, ...]] = {}
    for call in history.calls:
        heartbeat = call.arguments[0] if call.method in {"announce", "register"} and call.arguments else None
        if not isinstance(heartbeat, Heartbeat):
            continue
        figures = (heartbeat.tasks_processed, heartbeat.tasks_failed, heartbeat.tasks_retried)
        # the second thread may send what is a moment older
        of = (call.who, heartbeat.started_at)
        if any(now < before for now, before in zip(figures, seen.get(of, figures), strict=True)):
            yield Finding("C9", None, f"{call.who} counts back at {call.at:.3f} s: {seen[of]}, then {figures}")
        seen[of] = figures


def _told(history: History) -> Iterator[Finding]:
    tokens: dict[str, Step] = {step.after.version: step for step in history.steps}
    for token, times in history.told.items():
        if token not in tokens:
            yield Finding("C9", None, f"a step was told that was never made: {token}")
        elif times > 1:
            yield Finding("C9", tokens[token].after.task_id, f"it was told {times} times: {tokens[token]}")
    is_calm = history.terms.is_calm and not any(one.kind == "block" for one in history.executions)
    drained = {one.who for one in history.exits if one.how == "DRAINED"}
    runs: dict[str, str] = {}
    for token, step in tokens.items():
        # whoever ends its own attempt repeats it until it knows, and ends in order only when it does
        is_own = ended_running(step) and step.who == runs.get(step.after.task_id)
        if (is_calm or (is_own and step.who in drained)) and token not in history.told:
            yield Finding("C9", step.after.task_id, f"nobody was told: {step}")
        if is_start(step):
            runs[step.after.task_id] = step.who


def c10_bounded(history: History) -> Iterator[Finding]:
    """No structure is larger in the end than it may be."""
    assert history.remains is not None
    for name, (size, bound) in history.remains.sizes.items():
        if size > bound:
            yield Finding("C10", None, f"there are {size} {name}, and at most {bound} may be")


def c11_recovery(history: History) -> Iterator[Finding]:
    """Soon after the last fault everything has ended, and every worker ends when it is asked to."""
    remains = history.remains
    assert remains is not None
    if history.quiet_at is None:
        alive = [task_id for task_id, task in remains.tasks.items() if not task.is_terminal]
        within = f"{history.terms.recovery:.0f} s after the last fault"
        yield Finding("C11", alive[0] if alive else None, f"it is not quiet {within}; {len(alive)} tasks live")
    for who in history.left:
        yield Finding("C11", None, f"{who} did not end when it was asked to")


def c17_no_unknown_faults(history: History) -> Iterator[Finding]:
    """No worker ends, no loop fails, and nothing goes unrecorded by an error that nobody expects."""
    for one in history.exits:
        if one.how not in EXPECTED_ENDS:
            yield Finding("C17", None, str(one))
    for notice in history.notices:
        error = notice.details.get("error")
        is_illegal = "IllegalChange" in str(notice.details.get("reason", ""))
        is_unknown = notice.what in {"loop_failed", "beat_failed"} and error not in EXPECTED_FAULTS
        if is_unknown or is_illegal or notice.what == "recording_failed":
            yield Finding("C17", None, str(notice))
