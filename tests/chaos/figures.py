"""The figures of a run, for its report."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import quantiles

from tests.chaos.recovery import recoveries
from tests.chaos.run import Outcome
from tests.chaos.verdict import duplicates, lost, most_duplicates
from tests.simulation.checkers.finding import is_start


def percentile(values: Sequence[float], percent: int) -> float:
    """The value below which so many percent are."""
    if len(values) < 2:
        return max(values, default=0.0)
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def report(outcome: Outcome, *, command: str, found: Sequence[object], at: datetime) -> str:
    """The report of one run as Markdown, without a heading."""
    history = outcome.history
    assert history.remains is not None
    recovered = recoveries(outcome)
    took = [seconds for _, seconds in recovered]
    by_kind = Counter(strike.fault.kind for strike in outcome.strikes)
    statuses = Counter(task.status.value for task in history.remains.tasks.values())
    created = sum(one.answer == "created" for one in history.submissions)
    quiet = "never" if history.quiet_at is None else f"{history.quiet_at - history.healed_at:.1f} s"
    rows = [
        ("seed, mode", f"{outcome.plan.seed}, {outcome.plan.mode} what is promised"),
        ("when, how long", f"{at:%Y-%m-%d %H:%M} UTC, {outcome.seconds / 60:.1f} minutes"),
        ("processes", f"{outcome.plan.workers} workers of {history.terms.concurrency} slots, 2 APIs, one Redis"),
        ("tasks answered with 202", f"{created}"),
        ("tasks in the end, those of unclear answers too", _listed(statuses, "{1} {0}")),
        ("steps of tasks, attempts begun", f"{len(history.steps)}, {sum(map(is_start, history.steps))}"),
        ("faults injected", f"{len(outcome.strikes)}"),
        ("lost", f"{len(lost(outcome))}"),
        ("findings of the checkers", f"{len(found)}"),
        ("attempts begun beside a running one", f"{len(duplicates(history))}, of at most {most_duplicates(outcome)}"),
        ("recovery after a fault", f"p50 {percentile(took, 50):.2f} s, p99 {percentile(took, 99):.2f} s"),
        ("at rest after the last fault and submission", quiet),
        ("answers to submissions", _listed(outcome.load.answers, "{1} x {0}")),
    ]
    lines = [f"`{command}`", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), ""]
    lines += ["| fault | times | recovery, longest |", "|---|---|---|"]
    for kind, times in sorted(by_kind.items()):
        longest = max(seconds for strike, seconds in recovered if strike.fault.kind == kind)
        lines.append(f"| {kind} | {times} | {longest:.2f} s |")
    return "\n".join(lines) + "\n"


def _listed(numbers: Mapping[str, int], form: str) -> str:
    return ", ".join(form.format(name, number) for name, number in sorted(numbers.items()))


def verdict(seed: int, found: Sequence[object]) -> str:
    """The last line on a run."""
    return f"seed {seed}: " + (f"FAILED, {len(found)} findings" if found else "passed, nothing was found")


def say(*lines: str) -> None:
    """Show what a run did, and what came of it."""
    sys.stdout.write("\n".join((*lines, "")))
    sys.stdout.flush()
