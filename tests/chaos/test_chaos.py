"""Chaos on a real Redis: all that dtq is made of is struck, as a seed has it; then everything holds that must hold."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.figures import report, say, verdict
from tests.chaos.plan import plan_of
from tests.chaos.run import carry_out
from tests.chaos.verdict import findings

SHOWN = 20


@pytest.mark.timeout(0)  # a run ends by itself: whatever it waits for has a limit
def test_nothing_is_lost_made_up_or_done_again_without_reason(
    chaos_seed: int, tmp_path: Path, options: dict[str, Any]
) -> None:
    seed = chaos_seed
    tasks, workers, mode = options["tasks"], options["workers"], options["mode"]
    plan = plan_of(seed, tasks=tasks, workers=workers, minutes=options["minutes"], mode=mode)
    say(f"seed {seed}, planned:", *plan.lines(), "carried out:")

    outcome = carry_out(plan, folder=tmp_path, tell=say)

    found = findings(outcome)
    command = f"tox -e chaos -- --seed {seed} --tasks {tasks} --workers {workers} --mode {mode}"
    say(report(outcome, command=command, found=found, at=datetime.now(UTC)), verdict(seed, found))
    assert [] == [str(one) for one in found][:SHOWN], f"seed {seed}, files in {tmp_path}"
