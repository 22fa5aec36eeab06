"""What is written about the code: decisions, conformance, reasons, and words that must not be left behind."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.source import CODE, files, finding

MAX_DECISION_LINES = 60
DECISION_NAME = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
DECISION_SECTIONS = ("## Context", "## Decision", "## Consequences", "## Rejected")
DECISION_STATUS = re.compile(
    r"^Status: (Proposed|Accepted|Superseded by \[?\d+.*?)   Date: \d{4}-\d{2}-\d{2}", re.MULTILINE
)
DECISION_LINK = re.compile(r"\]\((\d{4}-[a-z0-9-]+\.md)\)")

TEST_REFERENCE = re.compile(r"(tests/[\w/]+\.py)::(\w+)(?:::(\w+))?")
DECISION_REFERENCE = re.compile(r"\badr/(\d{4})\b")
UNPROVEN = re.compile(r"\bPENDING\b")
TABLE_RULE = re.compile(r"^\|[\s:|-]+\|$")

PATH_NAME = re.compile(r"(?<![\w/.])(?:\.ci|benchmarks|changelog\.d|deploy|docs|src|tests)/[\w./*-]+(?![\w/*{<])")
PLACEHOLDER = re.compile(r"NAME|NNNN")

NOQA = re.compile(r"#\s*noqa(?P<codes>:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?(?P<reason>.*)", re.IGNORECASE)
TYPE_IGNORE = re.compile(r"#\s*type:\s*ignore(?P<codes>\[[\w, -]+\])?(?P<reason>.*)")
REASON = re.compile(r"\W*\w+\W+\w+")

LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
WORKPLACE = re.compile(
    r"(?<![\w.])/work/|\.\./shared|(?<![\w/])shared/|\bworkplace\b|\b(CONTRACT-REVIEW|DESIGN|STACK|MODELS|RELIABILITY)\b(?!_)"
    r"|\bpypi\.org|pythonhosted|deb\.debian\.org|npmjs"
)


def decisions_have_their_form(root: Path) -> list[str]:
    """Each ADR has its sections, a status, at most 60 lines, its own number, and a line in the list of decisions."""
    folder = root / "docs/adr"
    pages = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    overview = folder / "README.md"
    listed = set(DECISION_LINK.findall(overview.read_text())) if overview.exists() else set()
    found = [finding(root, overview, 1, f"{name} is listed and not there") for name in listed - {p.name for p in pages}]
    for expected, path in enumerate(pages, 1):
        text = path.read_text()
        problems = {
            "its name is not NNNN-we-do-this.md": DECISION_NAME.fullmatch(path.name) is None,
            f"number {expected} was expected": path.name[:4] != f"{expected:04}",
            "its title does not begin with its number": not text.startswith(f"# {expected}. "),
            f"at most {MAX_DECISION_LINES} lines are allowed": len(text.splitlines()) > MAX_DECISION_LINES,
            "no 'Status: ...   Date: ...' line": DECISION_STATUS.search(text) is None,
            "no 'We will' in it": not re.search(r"\bWe will\b", text),
            "docs/adr/README.md does not list it": path.name not in listed,
        } | {f"no section {section!r}": f"\n{section}\n" not in text for section in DECISION_SECTIONS}
        found += [finding(root, path, 1, problem) for problem, holds in problems.items() if holds]
    return found


def conformance_names_living_proof(root: Path) -> list[str]:
    """Each row of the conformance table ends with a test that exists (path::name) or a decision (adr/NNNN)."""
    path = root / "docs/contract-conformance.md"
    found, rows = [], 0
    for number, proof in _proofs(path.read_text().splitlines()):
        rows += 1
        tests, decisions = TEST_REFERENCE.findall(proof), DECISION_REFERENCE.findall(proof)
        dead_tests = ["::".join(filter(None, test)) for test in tests if not _has_test(root, *test)]
        dead_decisions = [f"adr/{digits}" for digits in decisions if not [*root.glob(f"docs/adr/{digits}-*.md")]]
        if UNPROVEN.search(proof) or not tests + decisions:
            found.append(finding(root, path, number, "the row names neither a test nor a decision"))
        found += [finding(root, path, number, f"there is no {proof}") for proof in dead_tests + dead_decisions]
    return found if rows else [finding(root, path, 1, "there is no table in it")]


def _proofs(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The last cell of each row of each table, with its line number; headers and rules left out."""
    for number, line in enumerate(lines, 1):
        is_header = number < len(lines) and TABLE_RULE.match(lines[number])
        if line.startswith("|") and not TABLE_RULE.match(line) and not is_header:
            yield number, line.rstrip().rstrip("|").rpartition("|")[2]


def _has_test(root: Path, module: str, name: str, method: str) -> bool:
    path = root / module
    if not path.exists():
        return False
    body = ast.parse(path.read_text()).body
    if method:
        classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
        body, name = (classes[0].body, method) if classes else ([], method)
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in body)


def documents_name_living_files(root: Path) -> list[str]:
    """Each path that a document names exists; decisions may speak of what has gone since."""
    documents = [*root.glob("*.md"), *root.glob("docs/*.md")]
    return [
        finding(root, path, number, f"there is no {name}")
        for path in sorted(documents)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for name in PATH_NAME.findall(line)
        if not PLACEHOLDER.search(name) and not [*root.glob(name.rstrip("./"))]
    ]


def exceptions_carry_reasons(root: Path) -> list[str]:
    """Each noqa and type: ignore names its rule and says why."""
    found = []
    for path in [path for top in CODE for path in files(root, under=top, suffix=".py")]:
        if path.parent == root / "tests/tidy":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in filter(None, (NOQA.search(line), TYPE_IGNORE.search(line))):
                if not match["codes"]:
                    found.append(finding(root, path, number, "it does not name the rule it sets aside"))
                elif not REASON.match(match["reason"]):
                    found.append(finding(root, path, number, "an exception without its reason"))
    return found


def linter_exceptions_carry_reasons(root: Path) -> list[str]:
    """Each rule that ruff is told to ignore has a comment: beside it, or above its file pattern."""
    path = root / "pyproject.toml"
    found = []
    inside, explained, section = False, False, ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.strip()
        if text.startswith("["):
            section, inside, explained = text, False, False
        if section not in {"[tool.ruff.lint]", "[tool.ruff.lint.per-file-ignores]"}:
            continue
        if inside and text.startswith('"') and "#" not in text:
            found.append(finding(root, path, number, f"{text} is ignored without a reason"))
        if not inside and text.startswith('"') and not text.endswith("[") and not explained and "#" not in text:
            found.append(finding(root, path, number, f"{text} has no reason above it"))
        explained = text.startswith("#") or (explained and not inside and text.startswith('"'))
        inside = (inside or text.startswith("ignore = [") or text.endswith("= [")) and not text.startswith("]")
    return found


def nothing_is_left_behind(root: Path) -> list[str]:
    """No note to oneself and no word from where the project was made."""
    found = []
    for path in files(root):
        relative = path.relative_to(root).as_posix()
        if relative.startswith("tests/tidy/"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            leftover, workplace = LEFTOVER.search(line), WORKPLACE.search(line)
            if leftover and relative not in {"STYLE.md", "CONTRIBUTING.md"}:
                found.append(finding(root, path, number, f"{leftover[0]} is for an issue, not for the tree"))
            if workplace and relative != ".ci/run":
                found.append(finding(root, path, number, f"{workplace[0]!r} means nothing to a reader"))
    return found
