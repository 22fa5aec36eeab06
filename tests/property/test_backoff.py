from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.domain.admission import TaskSpec, admit
from dtq.domain.change import Change
from dtq.domain.delivery import FailurePolicy, finish
from dtq.domain.lifecycle import submit
from dtq.domain.outcome import failed
from dtq.domain.retention import Retention, record_lifetime, task_lifetime
from dtq.domain.retry import RetryPolicy, delay_after
from dtq.domain.status import TaskStatus
from tests.domain.factories import LEASE, NOW, RULES, TASK_ID, TOKEN, a_task
from tests.property.strategies import MILLISECOND, retry_policies, specs

ATTEMPTS = st.integers(1, 100)
SHARES = st.floats(-1, 1)
"""A drawn jitter, as a share of the policy's."""


def seconds(duration: timedelta) -> Decimal:
    return Decimal(duration // timedelta(microseconds=1)) / 1_000_000


@given(attempt=ATTEMPTS, policy=retry_policies(), share=SHARES)
def test_a_delay_is_the_contracts_formula_to_the_millisecond(attempt: int, policy: RetryPolicy, share: float) -> None:
    jitter = share * policy.jitter

    delay = delay_after(attempt, policy=policy, jitter=jitter)

    capped = min(seconds(policy.maximum), seconds(policy.base) * 2 ** (attempt - 1))
    expected = max(Decimal(), capped * (1 + Decimal(jitter)))
    assert abs(seconds(delay) - expected) <= Decimal("0.0006")


@given(attempt=ATTEMPTS, policy=retry_policies(), share=SHARES)
def test_a_delay_stays_within_its_bounds(attempt: int, policy: RetryPolicy, share: float) -> None:
    delay = delay_after(attempt, policy=policy, jitter=share * policy.jitter)

    assert timedelta() <= delay <= policy.maximum * (1 + policy.jitter) + MILLISECOND
    assert timedelta() == delay % MILLISECOND


@given(attempt=st.integers(1, 99), policy=retry_policies())
def test_without_jitter_a_later_attempt_never_waits_for_less(attempt: int, policy: RetryPolicy) -> None:
    earlier, later = (delay_after(number, policy=policy, jitter=0) for number in (attempt, attempt + 1))

    assert earlier <= later


@given(attempt=st.integers(1, 99), policy=retry_policies(), share=SHARES)
def test_the_delay_is_read_back_wherever_it_is_kept(attempt: int, policy: RetryPolicy, share: float) -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=attempt, max_attempts=100)
    jitter = share * policy.jitter

    change = finish(
        task,
        lease=LEASE,
        outcome=failed("ValueError", "no", retryable=True),
        now=NOW,
        token=TOKEN,
        policy=FailurePolicy(retry=policy),
        jitter=jitter,
    )

    assert isinstance(change, Change)
    delay = delay_after(attempt, policy=policy, jitter=jitter)
    after = change.after
    assert (delay, delay) == (after.retry_delay, after.available_at - change.at)
    assert [delay] == [record.retry_delay for record in after.history]
    assert delay == task_lifetime(change.after, at=change.at, retention=Retention()) - Retention().task
    assert delay == record_lifetime(change.after, at=change.at, retention=Retention()) - Retention().idempotency


@given(value=st.integers(0, 2_592_000) | st.floats(0, 2_592_000) | st.decimals(0, 2_592_000, places=3).map(float))
def test_a_submitted_delay_is_kept_to_the_millisecond_above(value: float) -> None:
    spec = admit({"task_type": "echo_task", "payload": "{}", "delay_seconds": value}, rules=RULES)

    after = submit(spec, task_id=TASK_ID, now=NOW, token=TOKEN).after

    kept, asked = Fraction(seconds(after.available_at - after.created_at)), Fraction(repr(value))
    assert asked <= kept < asked + Fraction("0.001")
    assert (TaskStatus.PENDING if value else TaskStatus.QUEUED) is after.status


@given(spec=specs)
def test_a_submission_waits_exactly_as_long_as_was_admitted(spec: TaskSpec) -> None:
    change = submit(spec, task_id=TASK_ID, now=NOW, token=TOKEN)

    assert spec.delay == change.after.available_at - change.after.created_at
    assert spec.delay == task_lifetime(change.after, at=change.at, retention=Retention()) - Retention().task
    assert spec.ttl == (change.after.ttl_at and change.after.ttl_at - NOW)
