from datetime import timedelta

import pytest

from dtq.domain.retry import LONGEST_DELAY, RetryPolicy, delay_after

SECOND = timedelta(seconds=1)
INSTANT = timedelta(microseconds=1)
PLAIN = RetryPolicy(jitter=0)


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (8, 60), (100, 60), (10_000, 60)],
)
def test_the_delay_doubles_up_to_its_cap(attempt: int, seconds: int) -> None:
    assert timedelta(seconds=seconds) == delay_after(attempt, policy=PLAIN, jitter=0)


@pytest.mark.parametrize(("jitter", "milliseconds"), [(-0.2, 800), (-0.1, 900), (0, 1000), (0.1, 1100), (0.2, 1200)])
def test_the_jitter_is_a_share_of_the_delay(jitter: float, milliseconds: int) -> None:
    assert timedelta(milliseconds=milliseconds) == delay_after(1, policy=RetryPolicy(), jitter=jitter)


def test_the_cap_comes_before_the_jitter() -> None:
    assert timedelta(seconds=72) == delay_after(10, policy=RetryPolicy(), jitter=0.2)


def test_the_whole_delay_may_be_drawn_away() -> None:
    assert timedelta() == delay_after(3, policy=RetryPolicy(jitter=1), jitter=-1)


@pytest.mark.parametrize("attempt", [1, 2, 100])
def test_the_cap_may_equal_the_base(attempt: int) -> None:
    policy = RetryPolicy(base=SECOND, maximum=SECOND, jitter=0)

    assert SECOND == delay_after(attempt, policy=policy, jitter=0)


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2), (3, 3.5), (4, 3.5)])
def test_no_doubling_goes_beyond_a_cap_that_lies_just_below_it(attempt: int, seconds: float) -> None:
    policy = RetryPolicy(base=SECOND, maximum=3.5 * SECOND, jitter=0)

    assert timedelta(seconds=seconds) == delay_after(attempt, policy=policy, jitter=0)


def test_the_delay_is_in_whole_milliseconds() -> None:
    policy = RetryPolicy(base=timedelta(microseconds=1600), jitter=0)

    assert timedelta(milliseconds=2) == delay_after(1, policy=policy, jitter=0)


@pytest.mark.parametrize("attempt", [1, 43, 44, 100])
def test_the_widest_policy_does_not_overflow(attempt: int) -> None:
    policy = RetryPolicy(base=INSTANT, maximum=LONGEST_DELAY, jitter=1)

    assert delay_after(attempt, policy=policy, jitter=1) <= 2 * LONGEST_DELAY


@pytest.mark.parametrize(("attempt", "jitter"), [(0, 0), (-1, 0), (1, 0.21), (1, -0.21), (1, float("nan"))])
def test_what_no_worker_can_ask_for_is_refused(attempt: int, jitter: float) -> None:
    with pytest.raises(ValueError, match="out of bounds"):
        delay_after(attempt, policy=RetryPolicy(), jitter=jitter)


@pytest.mark.parametrize(
    ("base", "maximum"),
    [
        (timedelta(), SECOND),
        (-SECOND, SECOND),
        (SECOND + INSTANT, SECOND),
        (SECOND, LONGEST_DELAY + INSTANT),
    ],
)
def test_delays_out_of_order_are_refused(base: timedelta, maximum: timedelta) -> None:
    with pytest.raises(ValueError, match="0 < base <= maximum <= 30 days"):
        RetryPolicy(base=base, maximum=maximum)


@pytest.mark.parametrize("jitter", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_jitter_beyond_the_whole_is_refused(jitter: float) -> None:
    with pytest.raises(ValueError, match=r"within 0\.\.1"):
        RetryPolicy(jitter=jitter)


@pytest.mark.parametrize("jitter", [0, 1])
def test_the_bounds_of_the_jitter_are_allowed(jitter: float) -> None:
    assert jitter == RetryPolicy(jitter=jitter).jitter


def test_the_defaults_are_the_contracts() -> None:
    assert RetryPolicy(base=SECOND, maximum=60 * SECOND, jitter=0.2) == RetryPolicy()
