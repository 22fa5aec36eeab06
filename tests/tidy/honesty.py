"""Tests that test: none is skipped, none is expected to fail."""

import ast
from pathlib import Path

from tests.tidy.source import finding, trees

EVASIONS = frozenset({"importorskip", "skip", "skipif", "xfail"})


def no_test_is_skipped(root: Path) -> list[str]:
    """No test skips itself or is marked as failing: what cannot run here fails and says what is missing."""
    return [
        finding(root, path, node.lineno, f"pytest's {node.attr} hides a test that does not run")
        for path, tree in trees(root, under="tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in EVASIONS and _is_pytest(node.value)
    ]


def _is_pytest(node: ast.expr) -> bool:
    return ast.unparse(node) in {"pytest", "pytest.mark", "mark"}
