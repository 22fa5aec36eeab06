import subprocess
import sys
from pathlib import Path

import pytest

COUNT = Path(__file__).resolve().parents[2] / ".ci/count.py"
SUITE = '<testsuites><testsuite tests="{}" failures="{}" errors="{}" skipped="{}"/></testsuites>'


@pytest.mark.parametrize(
    ("suites", "status", "expected"),
    [
        ([(5, 0, 0, 0), (7, 0, 0, 0)], 0, ("12 passed, 0 failed", 0)),
        ([(5, 1, 0, 0), (7, 0, 2, 1)], 1, ("8 passed, 4 failed", 1)),
        ([(5, 0, 0, 0)], 1, ("5 passed, 1 failed", 1)),  # a linter failed, no test did
        ([], 0, ("0 passed, 1 failed", 1)),  # nothing ran at all
    ],
)
def test_ci_closes_with_one_true_line(
    tmp_path: Path, suites: list[tuple[int, int, int, int]], status: int, expected: tuple[str, int]
) -> None:
    for number, suite in enumerate(suites):
        (tmp_path / f"{number}.xml").write_text(SUITE.format(*suite))

    command = [sys.executable, str(COUNT), str(tmp_path), "--status", str(status)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert expected == (done.stdout.strip(), done.returncode)
