"""The fixtures of command tests: an installed third party, a module with one task, what was printed."""

import sys
from pathlib import Path

import pytest

from dtq.ports.backend import Backend, BackendOptions
from tests.entrypoints import third_party
from tests.entrypoints.commands import Printed

GREET = """
from dtq import task
print("this module prints")

@task("greet")
def greet(payload, ctx):
    return payload
"""


@pytest.fixture(autouse=True)
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Backend:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    third_party.install(tmp_path)
    (tmp_path / "greetings.py").write_text(GREET)
    sys.modules.pop("greetings", None)
    url = f"third://{id(request.node)}"
    monkeypatch.setenv("DTQ_REDIS_URL", url)
    monkeypatch.setenv("DTQ_TASK_MODULES", "greetings")
    return third_party.connect(url, options=BackendOptions())


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def read() -> tuple[str, str]:
        captured = capsys.readouterr()
        return captured.out, captured.err

    return read
