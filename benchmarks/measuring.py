"""Rounds, medians and ratios: cases take turns, and what is compared was measured in the same round."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.ground import Ground

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Something that is measured once a round."""

    name: str
    measure: Callable[[Ground], Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A figure of one case in terms of the same or another figure of another case, round by round."""

    name: str
    case: str
    to: str
    figure: str
    of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Cases that are run one after the other, and how they compare."""

    name: str
    about: str
    cases: Sequence[Case]
    ratios: Sequence[Ratio] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one case gave in one round; *error* is why it gave nothing."""

    round: int
    group: str
    case: str
    took_s: float
    figures: Figures = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A figure over all rounds."""

    median: float
    least: float
    most: float
    rounds: int


def run_all(groups: Sequence[Group], *, ground: Ground, rounds: int, on_run: Callable[[Run], None]) -> list[Run]:
    """Run each case of each group once a round. A case that fails is noted, and costs the others nothing."""
    runs: list[Run] = []
    for number in range(rounds):
        for group in groups:
            for case in group.cases:
                runs.append(_run(case, group=group, number=number, ground=ground))
                on_run(runs[-1])
    return runs


def _run(case: Case, *, group: Group, number: int, ground: Ground) -> Run:
    began = time.perf_counter()
    figures: Figures = {}
    error = ""
    try:
        ground.server.flush()
        figures = case.measure(ground)
    except Exception as problem:  # noqa: BLE001 - one broken case must not cost the hours of the others
        error = f"{type(problem).__name__}: {problem}"
        print(f"{group.name}, {case.name}: {error}", file=sys.stderr)
    took_s = round(time.perf_counter() - began, 1)
    return Run(round=number, group=group.name, case=case.name, took_s=took_s, figures=figures, error=error)


def summary_of(values: Sequence[float]) -> Summary:
    """Return median and range."""
    return Summary(median=statistics.median(values), least=min(values), most=max(values), rounds=len(values))


def medians(runs: Sequence[Run]) -> dict[tuple[str, str], dict[str, Summary]]:
    """Return each figure of each case, by group and case, in the order in which they were first run."""
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in runs:
        of_case = values.setdefault((run.group, run.case), {})
        for name, value in run.figures.items():
            of_case.setdefault(name, []).append(value)
    return {case: {name: summary_of(of) for name, of in figures.items()} for case, figures in values.items()}


def ratios(runs: Sequence[Run], *, groups: Sequence[Group]) -> dict[str, Summary]:
    """Return each ratio over the rounds that have both sides of it, and of more figures than it none."""
    found: dict[str, Summary] = {}
    for group in groups:
        by_round = {(run.round, run.case): run.figures for run in runs if run.group == group.name}
        for ratio in group.ratios:
            values = [
                figures[ratio.figure] / other
                for (number, case), figures in by_round.items()
                if case == ratio.case
                and ratio.figure in figures
                and (other := by_round.get((number, ratio.to), {}).get(ratio.of or ratio.figure))
            ]
            if values:
                found[ratio.name] = summary_of(values)
    return found
