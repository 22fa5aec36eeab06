import sys
from pathlib import Path

import pytest

from dtq.entrypoints.modules import load_registry

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_examples_can_be_named_from_their_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    # another test may have imported another module of this name
    monkeypatch.delitem(sys.modules, "my_tasks", raising=False)

    registry = load_registry(["my_tasks"])

    assert {"greet", "fetch_twice", "count_words"} == registry.task_types
    sys.modules.pop("my_tasks")
