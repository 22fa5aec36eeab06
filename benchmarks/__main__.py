"""`python -m benchmarks`: measure, print tables, write JSON. docs/performance.md tells how to read them."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import dtq
from benchmarks import bars, peer_runs, tables
from benchmarks.ground import Ground
from benchmarks.groups import ALL
from benchmarks.measuring import Group, Run, medians, ratios, run_all
from benchmarks.redis_server import kind_of

QUICK: Final = 0.05
ROUNDS: Final = 5
PEERS: Final = "peers"
"""What --only names to have the other task queues measured as well."""


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of every size, one round: does it all run?")
    parser.add_argument("--scale", type=float, help="the share of every full size that is taken (1)")
    parser.add_argument("--rounds", type=int, help=f"how often each case is measured, in turns ({ROUNDS})")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="groups, peers, parts of names of cases")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where everything that was measured goes")
    parser.add_argument("--server", type=kind_of, help="path, redis70, redis82 or valkey91; by default the first found")
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get("BENCHMARK_PEERS"),
        help="the harness that measures other task queues; or BENCHMARK_PEERS",
    )
    parser.add_argument(
        "--peer-names", nargs="+", default=[], metavar="NAME", help="which of its peers; all by default"
    )
    parser.add_argument("--list", action="store_true", help="name groups and cases, and end")
    chosen = parser.parse_args(arguments)
    if chosen.peers and not (chosen.peers / "bench.py").is_file():
        parser.error(f"--peers: there is no harness in {chosen.peers}")
    return chosen


def selected(only: Sequence[str]) -> list[Group]:
    """Return the groups, with those of their cases, that are wanted."""
    if not only:
        return list(ALL)
    found = []
    parts = set(only) - {group.name for group in ALL} - {PEERS}
    for group in ALL:
        cases = [case for case in group.cases if group.name in only or any(part in case.name for part in parts)]
        if cases:
            found.append(Group(name=group.name, about=group.about, cases=cases, ratios=group.ratios))
    return found


def told(run: Run) -> None:
    """Say on standard error what a case gave."""
    figures = ", ".join(f"{name} {tables.number(value)}" for name, value in run.figures.items())
    print(f"{run.round} {run.group}, {run.case} ({run.took_s} s): {run.error or figures}", file=sys.stderr, flush=True)


def main() -> int:
    """Measure and tell; 1 where a case failed."""
    chosen = options()
    groups = selected(chosen.only)
    if chosen.list:
        for group in groups:
            print(group.name, *(f"  {case.name}" for case in group.cases), sep="\n")
        return 0
    scale = chosen.scale or (QUICK if chosen.quick else 1.0)
    rounds = chosen.rounds or (1 if chosen.quick else ROUNDS)
    with Ground(kind=chosen.server, scale=scale) as ground:
        about = _machine(scale=scale, rounds=rounds) | {"redis": ground.server.version}
        print(f"# {about}\n", flush=True)
        runs = run_all(groups, ground=ground, rounds=rounds, on_run=told)
    of_peers: dict[str, Any] = {}
    if chosen.peers and (not chosen.only or PEERS in chosen.only):
        of_peers = peer_runs.measure(chosen.peers, names=chosen.peer_names, rounds=rounds, scale=scale)
    _tell(runs, groups=groups, of_peers=of_peers)
    if chosen.json:
        chosen.json.write_text(json.dumps(_document(runs, groups=groups, about=about, of_peers=of_peers), indent=1))
    return 1 if any(run.error for run in runs) else 0


def _machine(*, scale: float, rounds: int) -> dict[str, Any]:
    return {
        "when": time.strftime("%F %T"),
        "dtq": dtq.__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "scale": scale,
        "rounds": rounds,
    }


def _tell(runs: Sequence[Run], *, groups: Sequence[Group], of_peers: dict[str, Any]) -> None:
    of_ratios = ratios(runs, groups=groups)
    parts = [*tables.of_groups(runs, groups=groups)]
    if of_ratios:
        parts += ["### Ratios, round by round", tables.of_ratios(of_ratios)]
    parts += peer_runs.told(of_peers) if of_peers else [peer_runs.LEFT_OUT]
    parts += ["### Bars", bars.told(medians(runs), of_ratios=of_ratios, of_peers=of_peers)]
    parts += [f"FAILED: {run.group}, {run.case}, round {run.round}: {run.error}" for run in runs if run.error]
    print("\n\n".join(parts))


def _document(
    runs: Sequence[Run], *, groups: Sequence[Group], about: dict[str, Any], of_peers: dict[str, Any]
) -> dict[str, Any]:
    found = medians(runs)
    return {
        "about": about,
        "medians": {f"{group}: {case}": {n: asdict(s) for n, s in of.items()} for (group, case), of in found.items()},
        "ratios": {name: asdict(one) for name, one in ratios(runs, groups=groups).items()},
        "peers": of_peers,
        "runs": [asdict(run) for run in runs],
    }


if __name__ == "__main__":
    sys.exit(main())
