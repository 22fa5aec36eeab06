"""Makes the edits of mutants.txt one at a time, in a copy of the tree, and tells which ones no test notices.

    python -m tests.contract.run_mutants [--sample N] [--seed S] [--only TEXT] [--jobs N]

Ends with 0 if each edit turned its tests red. ``tox -e mutants`` does the same through tests/mutants.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from tests.servers.kinds import Kind, MissingServerError, find_program

ROOT: Final = Path(__file__).parents[2]
LIST: Final = Path(__file__).with_name("mutants.txt")
COPIED: Final = ("src", "tests", "pyproject.toml")
SERVERS: Final[tuple[Kind, ...]] = ("redis82", "valkey91", "path")
LIMIT_SECONDS: Final = 240
"""How long the tests of one edit may take: an edit may make a loop that does not end, and has been noticed then."""

JOBS: Final = min(4, os.cpu_count() or 1)

_SEPARATOR: Final = re.compile(r" \|(?= )")
_TESTS: Final = "tests:"
_LINE_BREAK: Final = "↵"


class BadMutant(Exception):
    """An entry of the list cannot be made, or its tests say nothing; the message names the line."""


class Mutant(NamedTuple):
    """One edit: *text*, which stands once in *file*, becomes *replacement*, and *tests* are to notice."""

    line: int
    tests: tuple[str, ...]
    file: str
    text: str
    replacement: str
    harm: str

    def __str__(self) -> str:
        return f"{self.file}: {self.harm}"

    @property
    def server(self) -> str:
        """What the tests run on: a real server where a script or an adapter of Redis is edited or tested."""
        is_real = any("/adapters/redis/" in one for one in (self.file, *self.tests))
        return a_real_server() if is_real else "memory"


class Suite(NamedTuple):
    """Tests, and what they run on."""

    tests: tuple[str, ...]
    server: str

    def __str__(self) -> str:
        return f"{self.server}: {' '.join(self.tests)}"


class Verdict(StrEnum):
    """What the tests made of an edit."""

    NOTICED = "noticed"
    SURVIVED = "SURVIVED"


def a_real_server() -> Kind:
    """Name a kind of server that this machine has."""
    reasons = []
    for kind in SERVERS:
        try:
            find_program(kind)
        except MissingServerError as error:
            reasons.append(str(error))
        else:
            return kind
    raise BadMutant("\n".join(reasons))


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """Read the list. Raises BadMutant where a line is no entry."""
    mutants: list[Mutant] = []
    tests: tuple[str, ...] = ()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(_TESTS):
            tests = tuple(line.removeprefix(_TESTS).split())
            continue
        parts = _SEPARATOR.split(line)
        if len(parts) != len(Mutant._fields) - 2 or not tests:
            raise BadMutant(f"line {number} is not of the form file | text | replacement | what it breaks")
        file, text, replacement, harm = (part.strip().replace(_LINE_BREAK, "\n") for part in parts)
        mutants.append(Mutant(number, tests, file, text, replacement, harm))
    return mutants


class Tree:
    """A copy of the project that may be harmed."""

    def __init__(self, folder: Path, *, root: Path = ROOT) -> None:
        self.folder = folder
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(root / name, folder / name)

    def edited(self, mutant: Mutant) -> str:
        """Return the edited text of the file. Raises BadMutant unless the edit fits in exactly one place."""
        source = (self.folder / mutant.file).read_text()
        places = source.count(mutant.text)
        if places != 1:
            raise BadMutant(f"line {mutant.line}: {mutant.text!r} stands {places} times in {mutant.file}, not once")
        edited = source.replace(mutant.text, mutant.replacement)
        if mutant.file.endswith(".py"):
            try:
                compile(edited, mutant.file, "exec")
            except SyntaxError as error:
                raise BadMutant(f"line {mutant.line}: the edit is no Python: {error}") from error
        return edited

    def judge(self, mutant: Mutant) -> Verdict:
        """Make the edit, run its tests, and undo it."""
        edited = self.edited(mutant)
        path = self.folder / mutant.file
        source = path.read_text()
        path.write_text(edited)
        try:
            is_green = self.is_green(mutant.tests, server=mutant.server)
        finally:
            path.write_text(source)
        return Verdict.SURVIVED if is_green else Verdict.NOTICED

    def is_green(self, tests: Sequence[str], *, server: str) -> bool:
        """Run *tests* against the copy until one fails. Raises BadMutant where they could not be run at all."""
        command = [*self._environment(server), sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["--timeout", "60", *tests]
        try:
            run = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return False
        if run.returncode not in {0, 1}:
            raise BadMutant(f"pytest ended with {run.returncode}:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        return run.returncode == 0

    def _environment(self, server: str) -> list[str]:
        env = shutil.which("env")
        if env is None:
            raise BadMutant("the program env is missing")
        # ahead of the installed package, and before any plugin of pytest imports that
        return [env, f"PYTHONPATH={self.folder / 'src'}", f"DTQ_TEST_SERVER={server}", "PYTHONDONTWRITEBYTECODE=1"]


class Bench:
    """Several copies of the project, so that edits are judged side by side."""

    def __init__(self, folder: Path, *, copies: int) -> None:
        self._trees: SimpleQueue[Tree] = SimpleQueue()
        for number in range(copies):
            (folder / str(number)).mkdir()
            self._trees.put(Tree(folder / str(number)))

    def judge(self, mutant: Mutant) -> Verdict:
        """Judge one edit in a copy that is free."""
        with self._tree() as tree:
            return tree.judge(mutant)

    def is_noticed(self, mutant: Mutant) -> bool:
        """Tell whether the tests of an edit notice it."""
        return self.judge(mutant) is Verdict.NOTICED

    def is_green(self, suite: Suite) -> bool:
        """Run a suite in a copy that is free."""
        with self._tree() as tree:
            return tree.is_green(suite.tests, server=suite.server)

    @contextmanager
    def _tree(self) -> Iterator[Tree]:
        tree = self._trees.get()
        try:
            yield tree
        finally:
            self._trees.put(tree)


def sampled(mutants: Sequence[Mutant], *, count: int, seed: str) -> list[Mutant]:
    """Choose *count* of *mutants*, the same ones for the same seed."""
    return sorted(mutants, key=lambda mutant: sha256(f"{seed} {mutant}".encode()).digest())[:count]


def suites_of(mutants: Sequence[Mutant]) -> list[Suite]:
    """Name each suite once, in the order of the list."""
    return list(dict.fromkeys(Suite(mutant.tests, mutant.server) for mutant in mutants))


def judgments(mutants: Sequence[Mutant], *, jobs: int) -> Iterator[tuple[Mutant, Verdict]]:
    """Judge each. Raises BadMutant where the tests fail without any edit."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        bench = Bench(Path(folder), copies=jobs)
        suites = suites_of(mutants)
        for suite, is_green in zip(suites, pool.map(bench.is_green, suites), strict=True):
            if not is_green:
                raise BadMutant(f"without any edit these tests fail on {suite.server}: {' '.join(suite.tests)}")
        yield from zip(mutants, pool.map(bench.judge, mutants), strict=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the whole list, or a part of it; say what survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, metavar="N", help="judge N of the list only")
    parser.add_argument("--seed", default="", help="which N")
    parser.add_argument("--only", default="", metavar="TEXT", help="judge those whose file or harm has TEXT in it")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many at a time")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in read_mutants() if options.only in str(mutant)]
    if options.sample is not None:
        chosen = sampled(chosen, count=options.sample, seed=options.seed)
    survivors = 0
    for mutant, verdict in judgments(chosen, jobs=options.jobs):
        sys.stdout.write(f"{verdict:9} line {mutant.line}: {mutant}\n")
        sys.stdout.flush()
        survivors += verdict is Verdict.SURVIVED
    sys.stdout.write(f"{len(chosen)} edits, {survivors} survived\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
