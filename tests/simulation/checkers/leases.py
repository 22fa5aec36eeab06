"""C18: what the broker says of a lease is so."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from dtq.domain.task import LeaseToken, TaskId
from dtq.ports.broker import HeldLease, LeaseReport
from tests.simulation.checkers.finding import Finding
from tests.simulation.history import History

_NEVER: Final = LeaseToken("")


def c18_leases(history: History) -> Iterator[Finding]:
    """A lease counts as kept while its task names it, and then only."""
    if history.wiped_at is not None:
        return
    named: dict[TaskId, list[tuple[float, LeaseToken]]] = defaultdict(list)
    for step in history.steps:
        named[step.after.task_id].append((step.at, step.after.lease or _NEVER))
    for call in history.calls:
        if call.method != "extend" or not isinstance(call.answer, list):
            continue
        for lease, report in zip(call.arguments[0], call.answer, strict=True):
            yield from _report(call.at, lease, report, named[lease.task_id])


def _report(
    at: float, lease: HeldLease, report: LeaseReport, named: list[tuple[float, LeaseToken]]
) -> Iterator[Finding]:
    # what was done in the same moment was done before or after
    possible = [name for when, name in named if when == at]
    possible += [name for when, name in named if when < at][-1:]
    if all((name == lease.lease) != report.kept for name in possible):
        yield Finding("C18", lease.task_id, f"at {at:.3f} s its lease {lease.lease} counts as kept: {report.kept}")
