import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtq.entrypoints.modules import TaskModuleError, load_registry

GREET = """
from dtq import task
print("imported")

@task("greet")
def greet(payload, ctx):
    return payload
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("made_here_")]:
        del sys.modules[name]


def test_modules_of_the_current_folder_can_be_named(here: Path) -> None:
    (here / "made_here_a.py").write_text(GREET)

    registry = load_registry(["made_here_a"])

    assert {"greet"} == registry.task_types


def test_what_a_module_prints_goes_to_stderr(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "made_here_b.py").write_text(GREET)

    load_registry(["made_here_b"])

    assert ("", "imported\n") == capsys.readouterr()


def test_a_missing_module_is_named(here: Path) -> None:
    with pytest.raises(TaskModuleError, match="'made_here_c' cannot be imported: ModuleNotFoundError"):
        load_registry(["made_here_c"])

    assert not list(here.iterdir())


def test_a_module_that_raises_is_named_with_its_error(here: Path) -> None:
    (here / "made_here_d.py").write_text("raise ZeroDivisionError('why')")

    with pytest.raises(TaskModuleError, match="'made_here_d' cannot be imported: ZeroDivisionError: why"):
        load_registry(["made_here_d"])


def test_two_modules_that_claim_one_type_are_refused(here: Path) -> None:
    (here / "made_here_e.py").write_text(GREET)
    (here / "made_here_f.py").write_text(GREET)

    with pytest.raises(TaskModuleError, match=r"'greet' is declared by made_here_e.greet and by made_here_f.greet"):
        load_registry(["made_here_e", "made_here_f"])


def test_no_module_means_no_handler() -> None:
    assert 0 == len(load_registry([]))
