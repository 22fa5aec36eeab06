"""Other task queues on the same Redis in the same run: a harness that is given, which dtq joins by peers_extra.py.

The harness is a folder with `bench.py`, which takes further peers from the folder that BENCH_EXTRA names, and whose
virtualenvs stand in BENCH_VENVS; one of them, `dtq`, has this project.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.tables import number, table

HERE: Final = Path(__file__).resolve().parent
VENVS: Final = Path(tempfile.gettempdir()) / "bench-venvs"
OURS: Final = ("dtq", "dtq-sync", "dtq-32", "limit", "limit-32")
LISTING: Final = "import json, peers; print(json.dumps([[peer.name, peer.venv, peer.default] for peer in peers.PEERS]))"
LEFT_OUT: Final = (
    "LEFT OUT: every comparison with other task queues. It needs their harness: --peers FOLDER, or BENCHMARK_PEERS; "
    "with --only, `peers` among its names."
)
FIGURES: Final = {
    "drain tasks/s": ("noop", "per_s"),
    "worker us": ("noop", "worker_us"),
    "Redis us": ("noop", "redis_us"),
    "commands": ("noop", "cmds"),
    "5 ms tasks/s": ("sleep5", "per_s"),
    "one by one/s": ("noop", "enq_seq.per_s"),
    "bulk/s": ("noop", "enq_fast.per_s"),
    "bytes waiting": ("noop", "bytes_per_queued"),
    "latency p50 ms": ("lat", "p50"),
    "latency p99 ms": ("lat", "p99"),
    "idle MiB": ("lat", "idle.rss_mib"),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of one of our peers in terms of the greatest of the others; None means all that are not ours."""

    ours: str
    figure: str
    others: tuple[str, ...] | None = None


RATIOS: Final = {
    "drain, no-op, c=10, x fastest peer": Comparison("dtq", "drain tasks/s"),
    "drain, 5 ms, c=100, x fastest peer": Comparison("dtq", "5 ms tasks/s"),
    "drain, no-op sync, c=10, x better of dramatiq and huey": Comparison(
        "dtq-sync", "drain tasks/s", ("dramatiq", "huey")
    ),
    "worker CPU a no-op task, c=10, x taskiq-stream": Comparison("dtq", "worker us", ("taskiq-stream",)),
    "enqueue one by one x taskiq-list": Comparison("dtq", "one by one/s", ("taskiq-list",)),
    "enqueue in batches x best bulk of a peer": Comparison("dtq", "bulk/s"),
    "idle latency p50 x taskiq-stream": Comparison("dtq", "latency p50 ms", ("taskiq-stream",)),
    "idle latency p99 x taskiq-stream": Comparison("dtq", "latency p99 ms", ("taskiq-stream",)),
    "drain, no-op, c=10, x limit": Comparison("dtq", "drain tasks/s", ("limit",)),
    "drain, no-op, c=32, x limit": Comparison("dtq-32", "drain tasks/s", ("limit-32",)),
}

Rounds = Mapping[int, Mapping[str, Mapping[str, float]]]
"""By round and peer, the figures."""


def check(folder: Path, *, names: Sequence[str]) -> None:
    """Look whether a harness can run, with the peers of these names. Raises ValueError, with what is amiss."""
    if not (folder / "bench.py").is_file():
        raise ValueError(f"--peers: there is no harness in {folder}")
    if not _driver().is_file():
        raise ValueError(f"--peers: there is no virtualenv `driver` in {_venvs()}, which BENCH_VENVS names")
    told = subprocess.run([_driver(), "-c", LISTING], cwd=folder, env=_environment(), capture_output=True, check=False)
    if told.returncode != 0:
        raise ValueError(f"--peers: the harness does not run: {told.stderr.decode(errors='replace')[-500:]}")
    peers = json.loads(told.stdout)
    venvs = {name: venv for name, venv, _ in peers}
    if unknown := [name for name in names if name not in venvs]:
        raise ValueError(f"--peer-names: {unknown[0]!r} is none of {', '.join(venvs)}")
    for name in [*(names or [name for name, _, is_default in peers if is_default]), *OURS]:
        if not (_venvs() / venvs[name] / "bin" / "python").is_file():
            raise ValueError(f"--peers: there is no virtualenv {venvs[name]!r}, for {name}, in {_venvs()}")


def measure(folder: Path, *, names: Sequence[str], rounds: int, scale: float) -> dict[str, Any]:
    """Run the harness with dtq among its peers; return medians and the ratios that bars speak of.

    Where it fails, this is among the errors, and what it had measured until then is told.
    """
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.json"
        sizes = ["--rounds", str(rounds), "--scale", str(scale), "--out", str(results)]
        wanted = ["--peers", ",".join(dict.fromkeys([*names, *OURS]))] if names else []
        done = subprocess.run(
            [_driver(), "bench.py", *sizes, *wanted], cwd=folder, env=_environment(), check=False, stdout=sys.stderr
        )
        found = read(json.loads(results.read_text()) if results.exists() else {"runs": []})
    if done.returncode != 0:
        found["errors"].append(f"the harness ended with {done.returncode}")
    return found


def _driver() -> Path:
    return _venvs() / "driver" / "bin" / "python"


def _venvs() -> Path:
    return Path(os.environ.get("BENCH_VENVS", VENVS))


def _environment() -> dict[str, str]:
    return {**os.environ, "BENCH_EXTRA": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}


def read(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return medians by peer, and the ratios, of what the harness wrote."""
    by_round: dict[int, dict[str, dict[str, float]]] = {}
    for run in document["runs"]:
        of_peer = by_round.setdefault(run["round"], {}).setdefault(run["peer"], {})
        for name, (phase, path) in FIGURES.items():
            value = _at(run, path) if run["phase"] == phase else None
            if value is not None:
                of_peer[name] = value
    names = dict.fromkeys(name for of in by_round.values() for name in of)
    return {
        "medians": {name: _medians([of[name] for of in by_round.values() if name in of]) for name in names},
        "ratios": dict(_ratios(by_round)),
        "errors": [
            f"{run['peer']}, {run['phase']}: {run['error'][:300]}" for run in document["runs"] if "error" in run
        ],
    }


def _at(run: Mapping[str, Any], path: str) -> float | None:
    found: Any = run
    for word in path.split("."):
        found = found.get(word) if isinstance(found, Mapping) else None
    return found if isinstance(found, int | float) else None


def _medians(rounds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for figures in rounds:
        for name, value in figures.items():
            values.setdefault(name, []).append(value)
    return {name: statistics.median(of) for name, of in values.items()}


def _ratios(by_round: Rounds) -> Iterator[tuple[str, float]]:
    for what, comparison in RATIOS.items():
        values = [ratio for of in by_round.values() if (ratio := _ratio(of, comparison)) is not None]
        if values:
            yield what, statistics.median(values)


def _ratio(of: Mapping[str, Mapping[str, float]], comparison: Comparison) -> float | None:
    figure = comparison.figure
    wanted = [name for name in of if name not in OURS] if comparison.others is None else comparison.others
    theirs = [of[name][figure] for name in wanted if figure in of.get(name, {})]
    own = of.get(comparison.ours, {}).get(figure)
    return own / max(theirs) if own is not None and theirs else None


def fastest_enqueue(of_peers: Mapping[str, Any], *, peer: str) -> float | None:
    """Return how many tasks a second a peer's producer submits in its fastest way."""
    figures = of_peers.get("medians", {}).get(peer, {})
    return max((figures[name] for name in ("one by one/s", "bulk/s") if name in figures), default=None)


def told(of_peers: Mapping[str, Any]) -> list[str]:
    """Return the tables of what the harness measured."""
    rows = [
        [peer, *(number(figures[name]) if name in figures else "" for name in FIGURES)]
        for peer, figures in of_peers["medians"].items()
    ]
    ratios = [[name, number(value)] for name, value in of_peers["ratios"].items()]
    failed = [f"FAILED: {error}" for error in of_peers["errors"]]
    return ["### Peers", table(["peer", *FIGURES], rows), table(["ratio", "median"], ratios), *failed]
