import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (path,) = folder.glob("dtq-*-py3-none-any.whl")
    with ZipFile(path) as archive:
        yield archive


def test_the_wheel_has_every_source_file_and_no_other(wheel: ZipFile) -> None:
    source = PROJECT / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*") if is_source(path)}

    actual = {name for name in wheel.namelist() if not name.startswith("dtq-")}

    assert expected == actual
    assert {".gz", ".js", ".lua", ".py", ".txt", ".typed"} == {Path(name).suffix for name in actual}


def is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def test_the_wheel_installs_the_command(wheel: ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]

    assert "dtq = dtq.entrypoints.cli:main" in wheel.read(name).decode().splitlines()


def test_the_wheel_carries_its_license(wheel: ZipFile) -> None:
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())
