"""A seed is a run: whatever happened in it happens again, in this process and in another."""

import subprocess
import sys

import pytest

from tests.simulation.campaign import ROOT
from tests.simulation.plan import Mode
from tests.simulation.run import run_seed

SEEDS = (0, 3, 187, 199)


def told_by_another_process(seed: int, mode: Mode, *, hash_seed: int) -> str:
    command = ["env", f"PYTHONHASHSEED={hash_seed}", sys.executable, "-m", "tests.simulation.campaign"]
    run = subprocess.run(
        [*command, "--replay", str(seed), "--mode", mode], cwd=ROOT, capture_output=True, check=False, text=True
    )
    assert not run.stderr
    return run.stdout


@pytest.mark.parametrize("mode", ["within", "beyond"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_gives_the_same_history_each_time(seed: int, mode: Mode) -> None:
    first, again = (run_seed(seed, mode=mode).lines() for _ in range(2))

    assert len(first) > 100
    assert first == again
    for hash_seed in (1, 2):
        assert "\n".join([*first, ""]) == told_by_another_process(seed, mode, hash_seed=hash_seed)
