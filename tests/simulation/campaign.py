"""Many seeds, on every processor of the machine.

    python -m tests.simulation.campaign [--seeds N] [--from-seed S] [--mode within|beyond] [--jobs N] [--replay SEED]

Prints each seed that fails, and ends with 0 if none does. ``--replay`` runs one seed and prints its whole history.
"""

import argparse
import gc
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, get_args

import msgspec
from msgspec import Struct

from tests.simulation.checkers import Finding, findings
from tests.simulation.history import History
from tests.simulation.plan import Mode
from tests.simulation.run import run_seed

ROOT: Final = Path(__file__).parents[2]
JOBS: Final = os.cpu_count() or 1
SHOWN_LINES: Final = 25
WIDEST_LINE: Final = 300


class Failed(Struct, frozen=True, kw_only=True):
    """A seed whose run must not be as it was."""

    seed: int
    mode: Mode
    findings: tuple[Finding, ...]
    last_lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"seed {self.seed} ({self.mode}) fails:",
                *(f"  {finding}" for finding in self.findings[:5]),
                "the last that was seen of it:",
                *(f"  {line}" for line in self.last_lines),
                f"to see it all: python -m tests.simulation.campaign --replay {self.seed} --mode {self.mode}",
            ]
        )


class Report(Struct, frozen=True, kw_only=True):
    """What became of a range of seeds."""

    seeds: int
    failed: tuple[Failed, ...]


def judge(seed: int, *, mode: Mode) -> Failed | None:
    """Run one seed and check it. What the run itself raises is a finding, too."""
    try:
        history = run_seed(seed, mode=mode)
    except Exception as error:  # noqa: BLE001 - an edit of the code may make it raise anything, and that is noticed then
        finding = Finding("run", None, f"{type(error).__name__}: {error}")
        return Failed(seed=seed, mode=mode, findings=(finding,), last_lines=())
    found = findings(history)
    if not found:
        return None
    return Failed(seed=seed, mode=mode, findings=tuple(found), last_lines=tuple(last_lines(history, found[0])))


def last_lines(history: History, finding: Finding) -> list[str]:
    """The last lines of a history that are about a finding's task, or of all where it has none."""
    about = finding.task_id
    lines = [line for line in history.lines() if about is None or about in line or " FAULT " in line]
    return [line[:WIDEST_LINE] for line in lines[-SHOWN_LINES:]]


def judge_all(seeds: Sequence[int], *, mode: Mode, most_failures: int) -> Report:
    """Run seeds one after the other, until so many have failed."""
    failed: list[Failed] = []
    count = 0
    with quietly():
        for seed in seeds:
            count += 1
            found = judge(seed, mode=mode)
            failed += [found] if found else []
            # a killed process leaves cycles behind, which nobody has cleared away while it ran
            gc.collect()
            if len(failed) >= most_failures:
                break
    return Report(seeds=count, failed=tuple(failed))


@contextmanager
def quietly() -> Iterator[None]:
    """Let nobody hear what coroutines of killed processes have to say when they are thrown away."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    gc.collect()
    gc.freeze()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        gc.collect()
        gc.unfreeze()
        sys.unraisablehook = hook


def in_processes(
    *,
    first: int,
    count: int,
    mode: Mode,
    jobs: int = JOBS,
    folder: Path = ROOT,
    settings: Mapping[str, str] | None = None,
    most_failures: int = 3,
    timeout: float | None = None,
) -> Report:
    """Judge seeds in processes of their own, of the project in *folder*."""
    shares = [range(first + number, first + count, jobs) for number in range(jobs)]
    shares = [share for share in shares if share]

    def judged(share: range) -> Report:
        command = ["env", *(f"{name}={value}" for name, value in (settings or {}).items()), sys.executable]
        command += ["-m", "tests.simulation.campaign", "--share", f"{share.start}:{share.stop}:{share.step}"]
        command += ["--mode", mode, "--most-failures", str(most_failures)]
        run = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=timeout)
        if run.returncode:
            raise RuntimeError(f"the simulation ended with {run.returncode}:\n{run.stderr.decode()[-4000:]}")
        return msgspec.json.decode(run.stdout, type=Report)

    with ThreadPoolExecutor(len(shares)) as pool:
        reports = list(pool.map(judged, shares))
    failed = sorted((one for report in reports for one in report.failed), key=lambda one: one.seed)
    return Report(seeds=sum(report.seeds for report in reports), failed=tuple(failed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many")
    parser.add_argument("--from-seed", type=int, default=0, metavar="S", help="the first one")
    parser.add_argument("--mode", choices=get_args(Mode), default="within", help="how much happens")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many processes at a time")
    parser.add_argument("--most-failures", type=int, default=3, metavar="N", help="when a process gives up")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one seed, and print its history")
    parser.add_argument("--share", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.replay is not None:
        return _replay(options.replay, mode=options.mode)
    if options.share:
        start, stop, step = map(int, options.share.split(":"))
        report = judge_all(range(start, stop, step), mode=options.mode, most_failures=options.most_failures)
        sys.stdout.buffer.write(msgspec.json.encode(report))
        return 0
    report = in_processes(
        first=options.from_seed,
        count=options.seeds,
        mode=options.mode,
        jobs=options.jobs,
        most_failures=options.most_failures,
    )
    for failed in report.failed:
        sys.stdout.write(f"{failed}\n\n")
    sys.stdout.write(f"{report.seeds} seeds, {len(report.failed)} failed\n")
    return 1 if report.failed else 0


def _replay(seed: int, *, mode: Mode) -> int:
    with quietly():
        history = run_seed(seed, mode=mode)
        found = findings(history)
        sys.stdout.write("\n".join([*history.lines(), *map(str, found), ""]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
