"""What the figures are to reach: ratios of one run, and a few absolutes that are meant for a quiet machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from benchmarks.groups.idling import PRIORITIES
from benchmarks.measuring import Summary
from benchmarks.peer_runs import fastest_enqueue
from benchmarks.tables import number, table

Medians = Mapping[tuple[str, str], Mapping[str, Summary]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bound of one figure: of a ratio by its name, of a case by group, case and figure, or of the peers."""

    what: str
    source: Literal["ratio", "figure", "peers"]
    key: tuple[str, ...]
    at_least: float | None = None
    at_most: float | None = None


def _ratio(what: str, *, at_least: float) -> Bar:
    return Bar(what=what, source="ratio", key=(what,), at_least=at_least)


def _figure(group: str, case: str, figure: str, *, at_least: float | None = None, at_most: float | None = None) -> Bar:
    what = f"{', '.join(filter(None, (group, case)))}: {figure}"
    return Bar(what=what, source="figure", key=(group, case, figure), at_least=at_least, at_most=at_most)


def _peers(what: str, *, at_least: float | None = None, at_most: float | None = None) -> Bar:
    return Bar(what=what, source="peers", key=(what,), at_least=at_least, at_most=at_most)


BARS: Final = (
    _peers("drain, no-op, c=10, x fastest peer", at_least=3.0),
    _peers("drain, 5 ms, c=100, x fastest peer", at_least=3.0),
    _peers("drain, no-op sync, c=10, x better of dramatiq and huey", at_least=1.5),
    _ratio("drain no-op, c=10 x limit", at_least=0.6),
    _ratio("drain no-op, c=32 x limit", at_least=0.6),
    _peers("worker CPU a no-op task, c=10, x taskiq-stream", at_most=0.35),
    _peers("enqueue one by one x taskiq-list", at_least=1.2),
    _peers("enqueue in batches x best bulk of a peer", at_least=1.5),
    _ratio("http 32 connections x empty", at_least=0.5),
    _figure("http", "POST batch of 100", "tasks x taskiq-list's fastest enqueue", at_least=3.0),
    _peers("idle latency p50 x taskiq-stream", at_most=1.5),
    _peers("idle latency p99 x taskiq-stream", at_most=1.0),
    _figure("idle", "latency", "p50 of the slowest priority x taskiq-stream", at_most=1.5),
    _figure("drain", "no-op, c=10", "script_calls", at_most=0.5),
    _figure("drain", "no-op, c=100", "script_calls", at_most=0.1),
    _figure("whole life", "", "commands", at_most=40),
    _figure("load", "open loop", "at 50% p99 x idle p50", at_most=20),
    _figure("due", "promotion, all at once", "promoted_per_s", at_least=5000),
    _figure("due", "promotion, steady", "late_p99_ms", at_most=300),
    _ratio("drain with 1,000,000 waiting x 10,000 waiting", at_least=0.9),
    _ratio("submit with 1,000,000 waiting x 10,000 waiting", at_least=0.9),
    _figure("idle", "cost", "cpu_percent", at_most=1),
    _figure("idle", "cost", "reads_per_s", at_most=10),
    _figure("idle", "cost", "memory_mib", at_most=70),
    _figure("memory", "worker", "after_mib", at_most=70),
    _figure("memory", "worker", "growth_percent", at_most=5),
    _figure("memory", "Redis, deploy/redis.conf", "bytes_waiting", at_most=1500),
)


def told(found: Medians, *, of_ratios: Mapping[str, Summary], of_peers: Mapping[str, Any]) -> str:
    """Return the table of bars: what is met, what is not, and what this run did not measure."""
    rows = []
    figures = {(group, case, name): one.median for (group, case), of in found.items() for name, one in of.items()}
    figures |= _derived(figures, of_peers=of_peers)
    for bar in BARS:
        match bar.source:
            case "ratio":
                value: float | None = of_ratios[bar.key[0]].median if bar.key[0] in of_ratios else None
            case "figure":
                value = figures.get((bar.key[0], bar.key[1], bar.key[2]))
            case _:
                value = of_peers.get("ratios", {}).get(bar.key[0])
        bound = f"at least {bar.at_least:g}" if bar.at_least is not None else f"at most {bar.at_most:g}"
        rows.append([bar.what, bound, "not measured" if value is None else number(value), _verdict(bar, value)])
    return table(["figure", "bar", "measured", ""], rows)


def _derived(
    figures: Mapping[tuple[str, str, str], float], *, of_peers: Mapping[str, Any]
) -> dict[tuple[str, str, str], float]:
    """Return the figures that two groups, or a group and a peer, make together."""
    submit, drain = ("enqueue", "one by one", "commands"), ("drain", "no-op, c=10", "commands")
    p99, idle = ("load", "open loop", "at 50% p99_ms"), ("idle", "latency", "p50_ms")
    batch, fastest = ("http", "POST batch of 100", "tasks_per_s"), fastest_enqueue(of_peers, peer="taskiq-list")
    of_each = [("idle", "latency", f"p{priority} p50_ms") for priority in PRIORITIES]
    slowest = max((figures[key] for key in of_each if key in figures), default=None)
    against = of_peers.get("ratios", {}).get("idle latency p50 x taskiq-stream")
    derived = {}
    if slowest is not None and against is not None:
        # the harness has one priority: what another adds to it is measured by our own
        derived["idle", "latency", "p50 of the slowest priority x taskiq-stream"] = against * slowest / figures[idle]
    if batch in figures and fastest is not None:
        derived["http", "POST batch of 100", "tasks x taskiq-list's fastest enqueue"] = figures[batch] / fastest
    if submit in figures and drain in figures:
        derived["whole life", "", "commands"] = figures[submit] + figures[drain]
    if p99 in figures and idle in figures:
        derived["load", "open loop", "at 50% p99 x idle p50"] = figures[p99] / figures[idle]
    return derived


def _verdict(bar: Bar, value: float | None) -> str:
    if value is None:
        return ""
    is_met = (bar.at_least is None or value >= bar.at_least) and (bar.at_most is None or value <= bar.at_most)
    return "met" if is_met else "**not met**"
