"""The files that the checks look at, and how a finding is written down.

A check is a function from the project's root to its findings, each "file:line: what is wrong". A line of source may be
taken out of a check by a comment `tidy: reason` at its end.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

Check = Callable[[Path], list[str]]

FOLDERS = (".ci", "benchmarks", "changelog.d", "deploy", "docs", "examples", "src", "tests")
CODE = ("src", "benchmarks", "tests")
TEXT_SUFFIXES = frozenset({"", ".cfg", ".conf", ".ini", ".lua", ".md", ".py", ".toml", ".txt", ".yaml", ".yml"})
EXEMPTION = re.compile(r"(?:#|--) tidy: \S+")


def files(root: Path, *, under: str = "", suffix: str = "") -> Iterator[Path]:
    """The project's own text files below a folder, in a stable order."""
    for top in (under,) if under else FOLDERS:
        for path in sorted((root / top).rglob(f"*{suffix}")):
            if path.is_file() and path.suffix in TEXT_SUFFIXES and "__pycache__" not in path.parts:
                yield path
    if not under:
        yield from (path for path in sorted(root.glob(f"*{suffix}")) if path.is_file() and path.suffix in TEXT_SUFFIXES)


def trees(root: Path, *, under: str) -> Iterator[tuple[Path, ast.Module]]:
    """Each Python module below a folder, parsed."""
    for path in files(root, under=under, suffix=".py"):
        yield path, ast.parse(path.read_text(), filename=str(path))


def finding(root: Path, path: Path, line: int, problem: str) -> str:
    """One finding, with the path as seen from the root."""
    return f"{path.relative_to(root)}:{line}: {problem}"


def exempt_lines(path: Path) -> set[int]:
    """The lines that say why a check does not concern them."""
    return {number for number, text in enumerate(path.read_text().splitlines(), 1) if EXEMPTION.search(text)}


def docstrings(tree: ast.Module) -> set[int]:
    """The ids of the nodes that are docstrings, of modules, classes, functions and attributes."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }


def lua_code(text: str) -> list[str]:
    """The lines of a Lua script without their comments."""
    without_blocks = re.sub(r"--\[\[.*?\]\]", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)
    return ["" if EXEMPTION.search(line) else line.partition("--")[0] for line in without_blocks.splitlines()]
