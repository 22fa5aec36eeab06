from pathlib import Path

import pytest

from benchmarks import peer_runs
from benchmarks.__main__ import options
from benchmarks.bars import BARS, told
from benchmarks.groups import ALL
from benchmarks.measuring import Group, Ratio, Run, Summary, medians, ratios

RATIO = Ratio(name="ours x theirs", case="ours", to="theirs", figure="per_s")
GROUP = Group(name="drain", about="", cases=(), ratios=(RATIO,))


def a_run(case: str, *, number: int = 0, **figures: float) -> Run:
    return Run(round=number, group="drain", case=case, took_s=0.0, figures=figures)


def test_a_ratio_compares_what_was_measured_in_the_same_round() -> None:
    fast = [a_run("ours", per_s=300.0), a_run("theirs", per_s=100.0)]
    slow = [a_run("ours", number=1, per_s=30.0), a_run("theirs", number=1, per_s=10.0)]
    alone = [a_run("ours", number=2, per_s=1.0)]

    found = ratios([*fast, *slow, *alone], groups=[GROUP])

    assert {"ours x theirs": Summary(median=3.0, least=3.0, most=3.0, rounds=2)} == found


def test_a_figure_is_the_median_of_its_rounds() -> None:
    runs = [a_run("ours", number=number, per_s=per_s) for number, per_s in enumerate((1.0, 9.0, 2.0))]

    assert Summary(median=2.0, least=1.0, most=9.0, rounds=3) == medians(runs)["drain", "ours"]["per_s"]


def test_each_ratio_compares_cases_that_are_measured() -> None:
    for group in ALL:
        cases = {case.name for case in group.cases}
        assert [] == [ratio.name for ratio in group.ratios if not {ratio.case, ratio.to} <= cases]


def test_each_bar_is_about_something_that_is_measured() -> None:
    of_ratios = {ratio.name for group in ALL for ratio in group.ratios}
    of_cases = {(group.name, case.name) for group in ALL for case in group.cases} | {("whole life", "")}

    for bar in BARS:
        match bar.source:
            case "ratio":
                assert bar.key[0] in of_ratios
            case "figure":
                assert bar.key[:2] in of_cases
            case "peers":
                assert bar.key[0] in peer_runs.RATIOS


def test_the_table_of_bars_tells_what_is_met_and_what_was_not_measured() -> None:
    fast = {"drain no-op, c=10 x limit": Summary(median=0.7, least=0.7, most=0.7, rounds=1)}
    slow = {"drain no-op, c=10 x limit": Summary(median=0.5, least=0.5, most=0.5, rounds=1)}

    assert "| at least 0.6 | 0.70 | met |" in told({}, of_ratios=fast, of_peers={})
    assert "| at least 0.6 | 0.50 | **not met** |" in told({}, of_ratios=slow, of_peers={})
    assert "| at least 0.6 | not measured |  |" in told({}, of_ratios={}, of_peers={})


def test_peers_are_compared_with_the_fastest_of_the_same_round() -> None:
    runs = [
        {"peer": peer, "phase": "noop", "round": number, "per_s": per_s}
        for number, figures in enumerate(({"dtq": 400, "a": 100, "b": 50}, {"dtq": 60, "a": 10, "b": 20}))
        for peer, per_s in {**figures, "limit": 1000}.items()
    ]

    found = peer_runs.read({"runs": runs})

    assert pytest.approx(3.5) == found["ratios"]["drain, no-op, c=10, x fastest peer"]
    assert pytest.approx(230 / 1000) == found["ratios"]["drain, no-op, c=10, x limit"]


def test_a_harness_that_is_not_there_is_told_of_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        options(["--peers", str(tmp_path)])

    assert f"--peers: there is no harness in {tmp_path}" in capsys.readouterr().err
