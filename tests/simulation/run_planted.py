"""Makes the edits of planted.txt one at a time, in a copy of the tree, and tells after how many seeds each is found.

    python -m tests.simulation.run_planted [--only TEXT] [--jobs N] [--seeds N]

Ends with 0 if each edit made a seed fail.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from tests.contract.run_mutants import Mutant, Tree, read_mutants
from tests.simulation.campaign import Failed, in_processes

LIST: Final = Path(__file__).with_name("planted.txt")
SEEDS: Final = 1000
"""Within how many seeds each edit must be found."""

JOBS: Final = min(4, os.cpu_count() or 1)
LIMIT_SECONDS: Final = 600


class Catch(Struct, frozen=True, kw_only=True):
    """What became of one edit: the seeds that it took, and what was found; None where nothing was."""

    edit: Mutant
    seeds: int
    found: str | None

    def __str__(self) -> str:
        return f"{self.seeds:5} seeds | {self.found or 'NOT FOUND':60.60} | {self.edit}"


def read_planted() -> list[Mutant]:
    """Read the list."""
    return read_mutants(LIST)


class Grounds:
    """Some copies of the project, in which edits are made side by side."""

    def __init__(self, folder: Path, *, copies: int) -> None:
        self._trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(copies):
            (folder / str(number)).mkdir()
            self._trees.put(Tree(folder / str(number)))

    def judge(self, edit: Mutant, *, seeds: int) -> Catch:
        """Make an edit in a copy that is free, run seeds until one fails that does not without it, and undo it."""
        tree = self._trees.get()
        edited = tree.edited(edit)
        path = tree.folder / edit.file
        source = path.read_text()
        try:
            first = 0
            while first < seeds:
                path.write_text(edited)
                failed = _first_failure(tree, first=first, count=seeds - first)
                path.write_text(source)
                if failed is None:
                    break
                if _first_failure(tree, first=failed.seed, count=1) is None:
                    return Catch(edit=edit, seeds=failed.seed + 1, found=str(failed.findings[0]))
                first = failed.seed + 1
            return Catch(edit=edit, seeds=seeds, found=None)
        except subprocess.TimeoutExpired:
            return Catch(edit=edit, seeds=seeds, found="a seed that does not end")
        finally:
            path.write_text(source)
            self._trees.put(tree)


def _first_failure(tree: Tree, *, first: int, count: int) -> Failed | None:
    report = in_processes(
        first=first,
        count=count,
        mode="within",
        jobs=1,
        folder=tree.folder,
        settings={"PYTHONPATH": f"{tree.folder / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"},
        most_failures=1,
        timeout=LIMIT_SECONDS,
    )
    return report.failed[0] if report.failed else None


def catches(edits: Sequence[Mutant], *, jobs: int = JOBS, seeds: int = SEEDS) -> Iterator[Catch]:
    """Judge each."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        grounds = Grounds(Path(folder), copies=jobs)
        yield from pool.map(lambda edit: grounds.judge(edit, seeds=seeds), edits)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the whole list, or a part of it; say what was not found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="judge those whose file or harm has TEXT in it")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many at a time")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds each of them gets")
    options = parser.parse_args(arguments)
    chosen = [edit for edit in read_planted() if options.only in str(edit)]
    missed = 0
    for catch in catches(chosen, jobs=options.jobs, seeds=options.seeds):
        sys.stdout.write(f"{catch}\n")
        sys.stdout.flush()
        missed += catch.found is None
    sys.stdout.write(f"{len(chosen)} edits, {missed} not found\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
