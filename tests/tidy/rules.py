"""Rules stay in the domain: no status word, no counting of attempts, no key name outside its one place."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.source import docstrings, exempt_lines, files, finding, lua_code, trees

STATUS_WORDS = (
    "pending",
    "queued",
    "running",
    "succeeded",
    "retrying",
    "failed",
    "dead_lettered",
    "cancelled",
    "expired",
)
STATUS_WORD = re.compile(rf"\b({'|'.join(STATUS_WORDS)})\b", re.IGNORECASE)
LUA_ATTEMPT = re.compile(r"attempt\w*\W{0,3}\s*(==|~=|<|>)|(==|~=|<=?|>=?)\s*[\w.\[\]'\"]*attempt", re.IGNORECASE)
KEY_NAME = re.compile(r"dtq:[a-z{<%]")
ADAPTERS = "src/dtq/adapters"
KEYSPACE = "src/dtq/adapters/redis/keys.py"


def scripts_know_no_status(root: Path) -> list[str]:
    """No Lua script names a status or compares attempts: it compares versions and moves what it is told to."""
    found = []
    for path in files(root, under="src", suffix=".lua"):
        for number, statement in enumerate(lua_code(path.read_text()), 1):
            word = STATUS_WORD.search(statement)
            if word is not None:
                found.append(finding(root, path, number, f"a script knows the status word {word[0]!r}"))
            if LUA_ATTEMPT.search(statement):
                found.append(finding(root, path, number, "a script compares attempts"))
    return found


def adapters_know_no_status(root: Path) -> list[str]:
    """No adapter names a status or compares attempts; TaskStatus(text) is decoding, and allowed."""
    found = []
    for path, tree in trees(root, under=ADAPTERS):
        if path == root / KEYSPACE:
            continue
        exempt = exempt_lines(path)
        for line, problem in _decisions(tree):
            if line not in exempt:
                found.append(finding(root, path, line, problem))
    return found


def _decisions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    prose = docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="TaskStatus"), attr=name):
                yield node.lineno, f"an adapter knows TaskStatus.{name}"
            case ast.Constant(value=str(text)) if id(node) not in prose and text.lower() in STATUS_WORDS:
                yield node.lineno, f"an adapter knows the status word {text!r}"
            case ast.Compare(left=left, comparators=others) if any(map(_names_attempts, [left, *others])):
                yield node.lineno, "an adapter compares attempts"
            case _:
                pass


def _names_attempts(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "attempt" in name


def keys_are_spelled_once(root: Path) -> list[str]:
    """Only the Keyspace spells a key name; prose and docstrings may."""
    found = []
    for path, tree in trees(root, under="src"):
        if path == root / KEYSPACE:
            continue
        prose, exempt = docstrings(tree), exempt_lines(path)
        found += [
            finding(root, path, node.lineno, f"the key name {text!r} belongs into keys.py")
            for node, text in _texts(tree)
            if KEY_NAME.search(text) and id(node) not in prose and node.lineno not in exempt
        ]
    for path in files(root, under="src", suffix=".lua"):
        for number, statement in enumerate(lua_code(path.read_text()), 1):
            if KEY_NAME.search(statement):
                found.append(finding(root, path, number, "a script spells a key name; keys come as KEYS"))
    return found


def _texts(tree: ast.Module) -> Iterator[tuple[ast.Constant, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)):
                yield node, text
            case _:
                pass
