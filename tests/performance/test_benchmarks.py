import sys
from pathlib import Path

import pytest

from benchmarks import peer_runs, tables
from benchmarks.bars import BARS, told
from benchmarks.groups import ALL
from benchmarks.measuring import Figures, Group, Ratio, Run, Summary, medians, ratios
from benchmarks.options import QUICK, ROUNDS, options, selected, with_peers
from benchmarks.stamps import VARIABLE, Stamps, stamp

RATIO = Ratio(name="ours x theirs", case="ours", to="theirs", figure="per_s")
GROUP = Group(name="drain", about="", cases=(), ratios=(RATIO,))
IDLE = {"p50_ms": 1.0, "p99_ms": 9.0, "p0 p50_ms": 1.1, "p0 p99_ms": 9.0, "p9 p50_ms": 1.5}
PEERS_OF_HARNESS = """
from types import SimpleNamespace

VENVS = {"huey": "huey", "rq": "rq"} | dict.fromkeys(["dtq", "dtq-sync", "dtq-32", "limit", "limit-32"], "dtq")
PEERS = [SimpleNamespace(name=name, venv=venv, default=name != "rq") for name, venv in VENVS.items()]
"""
FAILING = """
import json, sys
from pathlib import Path

run = {"round": 0, "peer": "dtq", "phase": "noop", "per_s": 100}
Path(sys.argv[sys.argv.index("--out") + 1]).write_text(json.dumps({"runs": [run]}))
sys.exit(3)
"""


def a_run(case: str, *, number: int = 0, **figures: float) -> Run:
    return run_of(case, figures, number=number)


def run_of(case: str, figures: Figures, *, number: int = 0) -> Run:
    return Run(round=number, group="drain", case=case, took_s=0.0, figures=figures)


def _always(value: float) -> Summary:
    return Summary(median=value, least=value, most=value, rounds=1)


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
    fast, slow = ({"drain no-op, c=10 x limit": _always(value)} for value in (0.7, 0.5))

    assert "| at least 0.6 | 0.70 | met |" in told({}, of_ratios=fast, of_peers={})
    assert "| at least 0.6 | 0.50 | **not met** |" in told({}, of_ratios=slow, of_peers={})
    assert "| at least 0.6 | not measured |  |" in told({}, of_ratios={}, of_peers={})


def test_the_bar_of_an_idle_worker_is_of_its_slowest_priority() -> None:
    found = {("idle", "latency"): {name: _always(value) for name, value in IDLE.items()}}
    of_peers = {"ratios": {"idle latency p50 x taskiq-stream": 1.4}}

    assert "| idle, latency: p50 of the slowest priority x taskiq-stream | at most 1.5 | 2.10 | **not met** |" in told(
        found, of_ratios={}, of_peers=of_peers
    )


def test_a_table_has_what_some_of_its_cases_lack() -> None:
    runs = [a_run("ours", per_s=1.0, us=2.0), a_run("theirs", per_s=3.0), a_run("other", ms=4.0)]

    assert [
        "### drain:  (one round)",
        "| case | per_s | us |\n| --- | --- | --- |\n| ours | 1.00 | 2.00 |\n| theirs | 3.00 |  |",
        "| case | ms |\n| --- | --- |\n| other | 4.00 |",
    ] == list(tables.of_groups(runs, groups=[GROUP]))


def test_a_table_of_many_figures_has_a_line_for_each() -> None:
    figures = {f"figure {place}": float(place) for place in range(tables.WIDE + 1)}

    found = list(tables.of_groups([run_of("ours", figures), run_of("theirs", figures)], groups=[GROUP]))[1]

    assert ["| figure | ours | theirs |", "| --- | --- | --- |", "| figure 0 | 0.00 | 0.00 |"] == found.split("\n")[:3]
    assert 2 + tables.WIDE + 1 == len(found.split("\n"))


def test_stamps_look_at_the_tasks_from_the_first_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = Stamps(3, first=2)
    monkeypatch.setenv(VARIABLE, str(stamps.path))
    try:
        for number in (0, 2, 3, 3):
            stamp(number)
        assert (2, 3, 2) == (stamps.done(), stamps.runs(), stamps.begun())
        assert [True, True, False] == [at > 0 for at in stamps.times_ns()]
        assert stamps.time_ns(2) == stamps.times_ns()[0]
    finally:
        stamps.close()


def test_peers_are_compared_with_the_fastest_of_the_same_round() -> None:
    runs = [
        {"peer": peer, "phase": "noop", "round": number, "per_s": per_s}
        for number, figures in enumerate(({"dtq": 400, "a": 100, "b": 50}, {"dtq": 60, "a": 10, "b": 20}))
        for peer, per_s in {**figures, "limit": 1000}.items()
    ]

    found = peer_runs.read({"runs": runs})

    assert pytest.approx(3.5) == found["ratios"]["drain, no-op, c=10, x fastest peer"]
    assert pytest.approx(230 / 1000) == found["ratios"]["drain, no-op, c=10, x limit"]


@pytest.mark.parametrize(
    ("arguments", "told_of"),
    [
        ("--only dain", "--only: no group is named 'dain', and no case has it in its name"),
        ("--only drain dain --list", "--only: no group is named 'dain'"),
        ("--only peers", "--only: peers need their harness"),
        ("--rounds 0", "--rounds: '0' is no whole number of at least 1"),
        ("--rounds -1", "--rounds: '-1' is no whole number of at least 1"),
        ("--rounds 1.5", "--rounds: '1.5' is no whole number of at least 1"),
        ("--scale 0", "--scale: '0' is no number above 0 and at most 1"),
        ("--scale -0.5", "--scale: '-0.5' is no number above 0 and at most 1"),
        ("--scale nan", "--scale: 'nan' is no number above 0 and at most 1"),
        ("--scale inf", "--scale: 'inf' is no number above 0 and at most 1"),
        ("--scale all", "--scale: 'all' is no number above 0 and at most 1"),
        ("--json {folder}", "--json: {folder} is a folder"),
        ("--json {folder}/none/figures.json", "--json: there is no folder {folder}/none"),
        ("--server nonsense", "--server: 'nonsense' is none of path, redis70, redis82, valkey91"),
        ("--server container", "--server: 'container' is none of path, redis70, redis82, valkey91"),
        ("--peer-names huey", "--peer-names: no peers are measured"),
        ("--peers {folder}", "--peers: there is no harness in {folder}"),
        ("--peers {folder}/harness --peer-names hueyy", "--peer-names: 'hueyy' is none of huey, rq, dtq"),
        ("--peers {folder}/harness --peer-names rq", "--peers: there is no virtualenv 'rq', for rq, in {folder}/venvs"),
        ("--peers {folder}/harness --only drain --peer-names huey", "--peer-names: no peers are measured"),
        ("--peers {folder}/broken", "--peers: the harness does not run: "),
    ],
)
def test_what_cannot_be_is_told_of_before_anything_is_measured(
    arguments: str, told_of: str, harness: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        options(arguments.format(folder=harness).split())

    assert told_of.format(folder=harness) in capsys.readouterr().err


def test_without_a_driver_the_harness_is_told_of(
    harness: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_VENVS", str(harness / "none"))

    with pytest.raises(SystemExit, match="2"):
        options(["--peers", str(harness / "harness")])

    assert f"--peers: there is no virtualenv `driver` in {harness / 'none'}" in capsys.readouterr().err


def test_what_can_be_is_taken(harness: Path) -> None:
    figures = harness / "figures.json"
    chosen = options(
        f"--only drain peers --scale 0.5 --rounds 3 --server redis82 --json {figures} --peers {harness}/harness".split()
    )

    assert (0.5, 3, "redis82", figures) == (chosen.scale, chosen.rounds, chosen.server, chosen.json)
    assert with_peers(chosen)
    assert (1.0, ROUNDS) == ((whole := options([])).scale, whole.rounds)
    assert (QUICK, 1) == ((quick := options(["--quick"])).scale, quick.rounds)


def test_groups_and_parts_of_the_names_of_cases_are_selected() -> None:
    found = {group.name: [case.name for case in group.cases] for group in selected(["idle", "c=32", "peers"])}

    assert {"idle": ["cost", "latency"], "drain": ["no-op, c=32", "limit, no-op, c=32"]} == found
    assert list(ALL) == selected([])


def test_what_a_harness_measured_before_it_failed_is_kept(harness: Path) -> None:
    found = peer_runs.measure(harness / "harness", names=["huey"], rounds=2, scale=0.5)

    assert 100 == found["medians"]["dtq"]["drain tasks/s"]
    assert ["the harness ended with 3"] == found["errors"]
    assert "FAILED: the harness ended with 3" in peer_runs.told(found)


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a harness whose run fails after its first figure, one that is broken, and virtualenvs."""
    monkeypatch.setenv("BENCH_VENVS", str(tmp_path / "venvs"))
    for folder, peers in (("harness", PEERS_OF_HARNESS), ("broken", "raise SystemExit('no psutil')")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "bench.py").write_text(FAILING)
        (tmp_path / folder / "peers.py").write_text(peers)
    for name in ("driver", "huey", "dtq"):
        python = tmp_path / "venvs" / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
    return tmp_path
