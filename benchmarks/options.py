"""The command line of `python -m benchmarks`: everything is checked before hours of measuring begin."""

import argparse
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import peer_runs
from benchmarks.groups import ALL
from benchmarks.measuring import Group
from benchmarks.redis_server import kind_of
from tests.servers import Kind

QUICK: Final = 0.05
ROUNDS: Final = 5
PEERS: Final = "peers"
"""What --only names to have the other task queues measured as well."""

ABOUT: Final = "Measure, print tables, write JSON. docs/performance.md tells how to read them."


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line. Ends the program, with 2, where something in it cannot be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=ABOUT)
    parser.add_argument("--quick", action="store_true", help="a twentieth of every size, one round: does it all run?")
    parser.add_argument("--scale", type=_scale, help="the share of every full size that is taken, 1 by default")
    parser.add_argument(
        "--rounds", type=_rounds, help=f"how often each case is measured, in turns, {ROUNDS} by default"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="groups, peers, parts of names of cases")
    parser.add_argument("--json", type=_file, metavar="FILE", help="where everything that was measured goes")
    parser.add_argument("--server", type=_server, help="path, redis70, redis82 or valkey91; by default the first found")
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get("BENCHMARK_PEERS") or None,
        help="the harness that measures other task queues; or BENCHMARK_PEERS",
    )
    parser.add_argument(
        "--peer-names", nargs="+", default=[], metavar="NAME", help="which of its peers; all by default"
    )
    parser.add_argument("--list", action="store_true", help="name groups and cases, and end")
    chosen = parser.parse_args(arguments)
    chosen.scale = chosen.scale or (QUICK if chosen.quick else 1.0)
    chosen.rounds = chosen.rounds or (1 if chosen.quick else ROUNDS)
    if wrong := _wrong(chosen):
        parser.error(wrong)
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


def with_peers(chosen: argparse.Namespace) -> bool:
    """Tell whether other task queues are to be measured as well."""
    return chosen.peers is not None and (not chosen.only or PEERS in chosen.only)


def _wrong(chosen: argparse.Namespace) -> str:
    """Say what cannot be, of options that are sound one by one."""
    nameless = [name for name in chosen.only if name != PEERS and not selected([name])]
    if nameless:
        return f"--only: no group is named {nameless[0]!r}, and no case has it in its name; --list names them"
    if chosen.peers is None and PEERS in chosen.only:
        return "--only: peers need their harness: --peers FOLDER, or BENCHMARK_PEERS"
    if chosen.peer_names and not with_peers(chosen):
        return "--peer-names: no peers are measured: they take --peers FOLDER and, with --only, `peers` among its names"
    if chosen.list or not with_peers(chosen):
        return ""
    try:
        peer_runs.check(chosen.peers, names=chosen.peer_names)
    except ValueError as error:
        return str(error)
    return ""


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    # not a number is not within bounds either
    if not 0 < scale <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0 and at most 1")
    return scale


def _rounds(text: str) -> int:
    try:
        rounds = int(text)
    except ValueError:
        rounds = 0
    if rounds < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return rounds


def _file(text: str) -> Path:
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written")
    return path


def _server(text: str) -> Kind:
    try:
        return kind_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
