"""`python -m benchmarks`: measure, print tables, write JSON. docs/performance.md tells how to read them."""

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import dtq
from benchmarks import bars, peer_runs, tables
from benchmarks.ground import Ground
from benchmarks.measuring import Group, Run, medians, ratios, run_all
from benchmarks.options import options, selected, with_peers


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
    with Ground(kind=chosen.server, scale=chosen.scale) as ground:
        about = _machine(scale=chosen.scale, rounds=chosen.rounds) | {"redis": ground.server.version}
        print(f"# {about}\n", flush=True)
        runs = run_all(groups, ground=ground, rounds=chosen.rounds, on_run=told)

    def write(of_peers: dict[str, Any]) -> None:
        if chosen.json:
            document = _document(runs, groups=groups, about=about, of_peers=of_peers)
            chosen.json.write_text(json.dumps(document, indent=1))

    of_peers: dict[str, Any] = {}
    # the peers take long, and what was measured before them must not hang on them
    write(of_peers)
    if with_peers(chosen):
        of_peers = peer_runs.measure(chosen.peers, names=chosen.peer_names, rounds=chosen.rounds, scale=chosen.scale)
        write(of_peers)
    _tell(runs, groups=groups, of_peers=of_peers)
    return 1 if any(run.error for run in runs) or of_peers.get("errors") else 0


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
