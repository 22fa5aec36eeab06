"""A seed decides everything: the same plan each time, another one for another seed."""

from collections import Counter

import pytest

from tests.chaos.plan import BEYOND, KINDS, Mode, Plan, plan_of


def a_plan(seed: int = 1, *, minutes: float | None = None, mode: Mode = "within") -> Plan:
    return plan_of(seed, tasks=100, workers=3, minutes=minutes, mode=mode)


def test_a_seed_makes_the_same_plan_each_time() -> None:
    assert a_plan(7, minutes=5) == a_plan(7, minutes=5)


def test_another_seed_makes_another_plan() -> None:
    assert a_plan(7).faults != a_plan(8).faults
    assert a_plan(7).requests != a_plan(8).requests


@pytest.mark.parametrize("seed", range(20))
def test_without_minutes_each_fault_comes_once(seed: int) -> None:
    assert dict.fromkeys(KINDS, 1) == Counter(fault.kind for fault in a_plan(seed).faults)


def test_beyond_what_is_promised_there_is_more() -> None:
    found = {fault.kind for fault in a_plan(mode="beyond").faults}

    assert {*KINDS, *BEYOND} == found


def test_faults_end_before_a_long_run_does() -> None:
    plan = a_plan(3, minutes=10)

    assert 2 * len(KINDS) < len(plan.faults)
    assert plan.faults[-1].ends_at < 600


def test_what_is_submitted_is_spread_over_the_whole_run() -> None:
    plan = a_plan(3, minutes=10)

    assert (0.0, 594.0) == (plan.requests[0].at, plan.requests[-1].at)
