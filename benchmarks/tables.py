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
    """Return one table for all cases of the same figures; one that would be wide and of one line stands upright."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for case, figures in cases.items():
        alike.setdefault(tuple(figures), []).append(case)
    for names, of in alike.items():
        if len(of) == 1 and len(names) > WIDE:
            yield table(["figure", of[0]], [[name, number(cases[of[0]][name].median)] for name in names])
        else:
            yield table(
                ["case", *names], [[case, *(number(cases[case][name].median) for name in names)] for case in of]
            )


def of_ratios(ratios: Mapping[str, Summary]) -> str:
    """Return the table of ratios."""
    rows = [
        [name, number(one.median), f"{number(one.least)} to {number(one.most)}", str(one.rounds)]
        for name, one in ratios.items()
    ]
    return table(["ratio", "median", "range", "rounds"], rows)


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"medians of {count} rounds"
