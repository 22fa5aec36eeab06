"""Markdown tables of what was measured."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.measuring import Group, Run, Summary, medians

SMALL = 10
LARGE = 100
WIDE = 8


def number(value: float) -> str:
    """Return a figure with as many digits as mean anything."""
    if abs(value) >= LARGE:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= SMALL else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def of_groups(runs: Sequence[Run], *, groups: Sequence[Group]) -> Iterator[str]:
    """Return a heading and tables of medians for each group that was run."""
    found = medians(runs)
    for group in groups:
        cases = {case: figures for (name, case), figures in found.items() if name == group.name and figures}
        if cases:
            rounds = max(summary.rounds for figures in cases.values() for summary in figures.values())
            yield f"### {group.name}: {group.about} ({_rounds(rounds)})"
            yield from _tables(cases)


def _tables(cases: Mapping[str, Mapping[str, Summary]]) -> Iterator[str]:
    """Return one table for all cases whose figures begin alike; one that would be wide has a line for each figure."""
    alike: dict[str, dict[str, Mapping[str, Summary]]] = {}
    for case, figures in cases.items():
        alike.setdefault(next(iter(figures)), {})[case] = figures
    for of in alike.values():
        names = list(dict.fromkeys(name for figures in of.values() for name in figures))
        if len(names) > WIDE:
            rows = [[name, *(_median(figures, name) for figures in of.values())] for name in names]
            yield table(["figure", *of], rows)
        else:
            yield table(
                ["case", *names], [[case, *(_median(figures, name) for name in names)] for case, figures in of.items()]
            )


def _median(figures: Mapping[str, Summary], name: str) -> str:
    return number(figures[name].median) if name in figures else ""


def of_ratios(ratios: Mapping[str, Summary]) -> str:
    """Return the table of ratios."""
    rows = [
        [name, number(one.median), f"{number(one.least)} to {number(one.most)}", str(one.rounds)]
        for name, one in ratios.items()
    ]
    return table(["ratio", "median", "range", "rounds"], rows)


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"medians of {count} rounds"
