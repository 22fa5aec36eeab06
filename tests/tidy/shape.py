"""Sizes and names: a module is one noun of at most 300 lines, a function is one thing of at most 40."""

import ast
import re
from pathlib import Path

from tests.tidy.source import CODE, files, finding, trees

MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 40
VAGUE_CLASS = re.compile(r"(Manager|Helper|Helpers|Util|Utils|Base|Impl|Data|Info)$")
VAGUE_MODULES = frozenset({"base", "common", "helpers", "misc", "util", "utils"})
VAGUE_FUNCTIONS = frozenset({"process", "handle"})


def modules_are_short(root: Path) -> list[str]:
    """No Python module and no Lua script is longer than 300 lines."""
    found = []
    for path in [
        *files(root, under="src"),
        *(path for top in CODE[1:] for path in files(root, under=top, suffix=".py")),
    ]:
        lines = len(path.read_text().splitlines())
        if path.suffix in {".py", ".lua"} and lines > MAX_MODULE_LINES:
            found.append(finding(root, path, lines, f"{lines} lines; at most {MAX_MODULE_LINES} are allowed"))
    return found


def functions_are_short(root: Path) -> list[str]:
    """No function is longer than 40 lines, its docstring included."""
    found = []
    for path, tree in [one for top in CODE for one in trees(root, under=top)]:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    problem = f"{node.name} has {lines} lines; at most {MAX_FUNCTION_LINES} are allowed"
                    found.append(finding(root, path, node.lineno, problem))
    return found


def names_say_something(root: Path) -> list[str]:
    """No module, class or function has a name that would fit any other as well."""
    found = []
    for path, tree in [one for top in CODE for one in trees(root, under=top)]:
        if path.stem in VAGUE_MODULES:
            found.append(finding(root, path, 1, f"a module named {path.stem} can hold anything"))
        for node in ast.walk(tree):
            is_class = isinstance(node, ast.ClassDef) and VAGUE_CLASS.search(node.name)
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in VAGUE_FUNCTIONS
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (is_class or is_function):
                found.append(finding(root, path, node.lineno, f"{node.name} does not say what it is"))
    return found
