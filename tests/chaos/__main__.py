"""Chaos outside pytest, for long runs: `python -m tests.chaos --seed 1 --tasks 20000 --workers 6 --minutes 30`."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.figures import report, say, verdict
from tests.chaos.plan import plan_of
from tests.chaos.run import carry_out
from tests.chaos.verdict import findings

SHOWN = 50


def main(arguments: Sequence[str]) -> int:
    """Run the seeds that are asked for; return 1 as soon as one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds in a row")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=3, choices=range(3, 13))
    parser.add_argument("--minutes", type=float, help="go on for so long; without it, each fault comes once")
    parser.add_argument("--mode", choices=("within", "beyond"), default="within")
    parser.add_argument("--report", type=Path, help="append the report to this file")
    parser.add_argument("--folder", type=Path, help="where the files of the run are kept; else they are removed")
    options = parser.parse_args(arguments)
    return max(run(seed, options) for seed in range(options.seed, options.seed + options.seeds))


def run(seed: int, options: argparse.Namespace) -> int:
    """Run one seed and report on it; return 1 if anything was found."""
    plan = plan_of(seed, tasks=options.tasks, workers=options.workers, minutes=options.minutes, mode=options.mode)
    say(f"seed {seed}, planned:", *plan.lines(), "carried out:")
    minutes = "" if options.minutes is None else f" --minutes {options.minutes:g}"
    command = (
        f"python -m tests.chaos --seed {seed} --tasks {plan.tasks} --workers {plan.workers}{minutes} --mode {plan.mode}"
    )
    with tempfile.TemporaryDirectory(prefix="dtq-chaos-") as folder:
        if options.folder is not None:
            options.folder.mkdir(parents=True)
        outcome = carry_out(plan, folder=options.folder or Path(folder), tell=say)
    found = findings(outcome)
    text = report(outcome, command=command, found=found, at=datetime.now(UTC))
    say(*map(str, found[:SHOWN]), text, verdict(seed, found))
    if options.report is not None:
        with options.report.open("a") as file:
            file.write(text)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
