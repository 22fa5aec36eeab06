"""The figures of a run, for its report."""

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from statistics import quantiles

from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from tests.chaos.run import Outcome
from tests.chaos.strike import EVERYBODY, Strike
from tests.chaos.verdict import duplicates, lost, most_duplicates
from tests.simulation.checkers.finding import is_start
from tests.simulation.history import History


def recoveries(outcome: Outcome) -> list[tuple[Strike, float]]:
    """How many seconds after the end of each fault all that it had struck had gone on.

    That is: whatever attempt its victims were running was ended or begun again, some attempt has begun anywhere, and
    some submission was answered with 202. What happened before the end of the fault has taken no time.
    """
    history = outcome.history
    starts = sorted(step.at for step in history.steps if is_start(step))
    answered = sorted(one.ended_at for one in history.submissions if one.answer == "created" and one.ended_at)
    found = []
    for strike in outcome.strikes:
        over = strike.at if strike.fault.kind.endswith("_kill") or strike.ended_at is None else strike.ended_at
        moments = [_next(starts, over), _next(answered, over), *_resumed(history, strike)]
        found.append((strike, max(0.0, *(one - over for one in moments if one is not None))))
    return found


def _next(moments: Sequence[float], after: float) -> float | None:
    return next((one for one in moments if one >= after), None)


def _resumed(history: History, strike: Strike) -> list[float]:
    """When each attempt that a victim was running at the time was ended or begun again."""
    running: dict[TaskId, Task] = {}
    found = []
    for step in history.steps:
        task = step.after
        if step.at <= strike.at:
            if task.status is TaskStatus.RUNNING and strike.whom in {EVERYBODY, task.worker_id}:
                running[task.task_id] = task
            else:
                running.pop(task.task_id, None)
        elif task.task_id in running and task.lease != running[task.task_id].lease:
            del running[task.task_id]
            found.append(step.at)
    return found


def percentile(values: Sequence[float], percent: int) -> float:
    """The value below which so many percent are."""
    if len(values) < 2:
        return max(values, default=0.0)
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def report(outcome: Outcome, *, command: str, found: Sequence[object], at: datetime) -> str:
    """The report of one run as Markdown, without a heading."""
    history = outcome.history
    assert history.remains is not None
    took = [seconds for _, seconds in recoveries(outcome)]
    by_kind = Counter(strike.fault.kind for strike in outcome.strikes)
    statuses = Counter(task.status.value for task in history.remains.tasks.values())
    created = sum(one.answer == "created" for one in history.submissions)
    quiet = "never" if history.quiet_at is None else f"{history.quiet_at - history.healed_at:.1f} s"
    rows = [
        ("seed, mode", f"{outcome.plan.seed}, {outcome.plan.mode} what is promised"),
        ("when, how long", f"{at:%Y-%m-%d %H:%M} UTC, {outcome.seconds / 60:.1f} minutes"),
        ("processes", f"{outcome.plan.workers} workers of {history.terms.concurrency} slots, 2 APIs, one Redis"),
        ("tasks answered with 202", f"{created}"),
        ("tasks there in the end", ", ".join(f"{number} {name}" for name, number in sorted(statuses.items()))),
        ("steps of tasks, attempts begun", f"{len(history.steps)}, {sum(map(is_start, history.steps))}"),
        ("faults injected", f"{len(outcome.strikes)}"),
        ("lost", f"{len(lost(outcome))}"),
        ("findings of the checkers", f"{len(found)}"),
        ("duplicates", f"{len(duplicates(history))}, of at most {most_duplicates(outcome)}"),
        ("recovery after a fault", f"p50 {percentile(took, 50):.2f} s, p99 {percentile(took, 99):.2f} s"),
        ("at rest after the last fault and submission", quiet),
        (
            "answers to submissions",
            ", ".join(f"{number} x {name}" for name, number in sorted(outcome.load.answers.items())),
        ),
    ]
    lines = [f"`{command}`", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), ""]
    lines += ["| fault | times | recovery, longest |", "|---|---|---|"]
    for kind, times in sorted(by_kind.items()):
        longest = max(seconds for strike, seconds in recoveries(outcome) if strike.fault.kind == kind)
        lines.append(f"| {kind} | {times} | {longest:.2f} s |")
    return "\n".join(lines) + "\n"


def say(*lines: str) -> None:
    """Show what a run did, and what came of it."""
    sys.stdout.write("\n".join((*lines, "")))
    sys.stdout.flush()
