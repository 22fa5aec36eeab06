import importlib
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


def test_the_current_folder_is_searched_only_where_a_module_is_named(here: Path) -> None:
    load_registry([])
    before = str(here) in sys.path
    (here / "made_here_l.py").write_text(GREET)

    load_registry(iter(["made_here_l"]))

    assert (False, True) == (before, str(here) in sys.path)


FROM = "from dtq import task\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('@task("x")\ndef b(p, c): pass\n@task("x")\ndef b(p, c): return 2', "'x', hides the first"),
        ('@task("x")\ndef b(p, c): pass\n@task("y")\ndef b(p, c): return 2', "'y', hides the first"),
        ('for n in ("x", "y"):\n    @task(n)\n    def b(p, c): pass', "'y', hides the first"),
        ('@task("x")\ndef a(p, c): pass\n@task("x")\ndef b(p, c): pass', "is declared by made_here_g.a and by"),
        ('@task("x")\n@task("y")\ndef b(p, c): pass', "is declared as a task already"),
        ('@task("x")\ndef b(p, c): pass\ntask("y")(b)', "is declared as a task already"),
        ('@task("x")\ndef b(p, c): pass\nb = None', "'x': made_here_g.b has no name in its module"),
        (
            'import functools\ntask("x")(functools.partial(print))\ny = task("y")(functools.partial(print))',
            "'x': .* no name",
        ),
        ('def plain(f): return lambda p, c: f(p, c)\n@plain\n@task("x")\ndef b(p, c): pass', "put @task on top"),
        (
            'import functools\ndef w(f): return functools.wraps(f)(lambda *a: 1)\n@w\n@task("x")\ndef b(p, c): pass',
            "put @task on top",
        ),
        ('@task("x")\ndef b(p: "task.Order", c): pass', "'x': .* cannot be resolved .AttributeError"),
        ('@task("x", payload=int)\ndef b(p, c): pass', "'x'"),
    ],
)
def test_declarations_that_would_be_left_out_are_refused(here: Path, text: str, words: str) -> None:
    (here / "made_here_g.py").write_text(FROM + text)

    with pytest.raises(TaskModuleError, match=words):
        load_registry(["made_here_g"])


@pytest.mark.parametrize(
    "text",
    [
        '@task("x")\ndef b(p, c): pass\nc = b\ndel b',
        'if True:\n    @task("x")\n    def b(p, c): pass\nelse:\n    @task("x")\n    def b(p, c): pass',
        'import functools\ndef f(n, p, c): pass\nx = task("x")(functools.partial(f, 1))',
        'def make():\n    @task("y")\n    def b(p, c): pass\nmake()\n@task("x")\ndef b(p, c): pass',
    ],
)
def test_declarations_that_are_there_in_the_end_are_taken(here: Path, text: str) -> None:
    (here / "made_here_h.py").write_text(FROM + text)

    assert {"x"} == load_registry(["made_here_h"]).task_types


def test_a_module_that_is_reloaded_declares_its_tasks_anew(here: Path) -> None:
    (here / "made_here_i.py").write_text(GREET)
    load_registry(["made_here_i"])

    importlib.reload(sys.modules["made_here_i"])

    assert {"greet"} == load_registry(["made_here_i"]).task_types


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("import asyncio\nraise asyncio.CancelledError", "CancelledError"),
        ("def (", "SyntaxError"),
        ("from tests.security.unnameable import Anonymous\nraise Anonymous('x')", "Anonymous: x"),
        ("from tests.security.unnameable import Textless\nraise Textless", "Textless: no message"),
    ],
)
def test_a_module_that_ends_the_process_is_named(here: Path, text: str, words: str) -> None:
    (here / "made_here_j.py").write_text(text)

    with pytest.raises(TaskModuleError, match=f"'made_here_j' cannot be imported: {words}"):
        load_registry(["made_here_j"])


def test_ctrl_c_while_a_module_is_imported_is_no_fault_of_it(here: Path) -> None:
    (here / "made_here_k.py").write_text("raise KeyboardInterrupt")

    with pytest.raises(KeyboardInterrupt):
        load_registry(["made_here_k"])
