"""What is said of a seed that fails."""

from collections.abc import Iterator

import pytest

from tests.simulation import campaign
from tests.simulation.checkers import Finding
from tests.simulation.history import History
from tests.simulation.plan import plan_of
from tests.simulation.run import run_seed

SEED = 3


@pytest.fixture
def always_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find something wrong with the last task of each run."""

    def wrong(history: History) -> list[Finding]:
        return [Finding("C1", history.steps[-1].after.task_id, "it is lost")]

    monkeypatch.setattr(campaign, "findings", wrong)


@pytest.mark.usefixtures("always_wrong")
def test_a_failing_seed_tells_itself_its_last_moments_and_how_to_see_it_again() -> None:
    report = campaign.judge_all([SEED], mode="within", most_failures=1)

    (failed,) = report.failed
    told = str(failed)
    about = failed.findings[0].task_id
    assert about
    assert told.startswith(f"seed {SEED} (within) fails:\n  C1: it is lost (task {about})")
    assert any(about in line for line in failed.last_lines)
    assert 0 < len(failed.last_lines) <= campaign.SHOWN_LINES
    assert told.endswith(f"python -m tests.simulation.campaign --replay {SEED} --mode within")


@pytest.mark.usefixtures("always_wrong")
def test_a_campaign_gives_up_after_so_many_failures() -> None:
    report = campaign.judge_all(range(10), mode="within", most_failures=2)

    assert len(report.failed) == 2
    assert report.seeds == 2


def test_a_run_that_breaks_off_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int, *, mode: str) -> Iterator[None]:
        raise ValueError(f"seed {seed} in mode {mode}")

    monkeypatch.setattr(campaign, "run_seed", broken)

    failed = campaign.judge(SEED, mode="within")

    assert failed is not None
    assert str(failed.findings[0]) == "run: ValueError: seed 3 in mode within"


def test_seeds_are_shared_among_processes_and_none_is_left_out() -> None:
    report = campaign.in_processes(first=20, count=5, mode="within", jobs=2)

    assert report.seeds == 5
    assert not report.failed


def test_a_process_that_breaks_off_is_told_of() -> None:
    with pytest.raises(RuntimeError, match="the simulation ended with"):
        campaign.in_processes(first=0, count=1, mode="within", folder=campaign.ROOT / "src")


def test_most_seeds_meet_faults_and_some_do_not() -> None:
    calm = [seed for seed in range(40) if not plan_of(seed).disasters]

    assert 0 < len(calm) < 20


def test_what_a_seed_does_is_worth_looking_at() -> None:
    history = run_seed(SEED)

    assert history.steps
    assert history.executions
    assert history.faults
