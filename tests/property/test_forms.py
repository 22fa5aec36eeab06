"""Forms are described once: an act is the same whether its form was described for it or for another act before."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.adapters.redis import description
from dtq.domain import lifecycle
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change, Requirement
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, LeaseToken, Receipt, Task, Version, WorkerId
from dtq.ports.backend import BackendOptions
from tests.adapters.redis.sent import new_forms, sent
from tests.factories import NOW, OPERATOR, a_change, a_fault, a_success, a_task, a_token, an_audit_entry

Decide = Callable[[Task, datetime, Version], object]

NEEDS_ENTRY: Final = frozenset({Requirement.HELD, Requirement.UNDELIVERED})
OPTIONS: Final = BackendOptions()
SHARED: Final = new_forms(OPTIONS)


def _started(task: Task, at: datetime, token: Version) -> object:
    receipt = task.receipt or Receipt(task.queue, task.priority, EntryId("0-1"))
    claim = Claim(worker=WorkerId(f"worker-{token}"), lease=LeaseToken(f"lease-{token}"), receipt=receipt)
    return start(task, claim=claim, now=at, token=token, policy=FailurePolicy())


def _finished(outcome: Outcome) -> Decide:
    def decide(task: Task, at: datetime, token: Version) -> object:
        lease = task.lease or LeaseToken("")
        return finish(task, lease=lease, outcome=outcome, now=at, token=token, policy=FailurePolicy(), jitter=0)

    return decide


def _restored(task: Task, at: datetime, token: Version) -> object:
    if task.status is not TaskStatus.QUEUED:
        return None
    return lifecycle.restore(task, now=at, token=token, audit=an_audit_entry(subject=token))


def _reburied(task: Task, at: datetime, token: Version) -> object:
    if task.dlq_entry_id is None:
        return None
    return lifecycle.rebury(task, now=at, token=token, audit=an_audit_entry())


def _named_again(task: Task, at: datetime, token: Version) -> object:
    if task.dlq_entry_id is not None:
        return None
    letter = EntryId(f"{token.encode().hex()}-1")
    return lifecycle.name_again(task, letter=letter, now=at, token=token, audit=an_audit_entry())


DECISIONS: Final[Mapping[str, Decide]] = {
    "start": _started,
    "succeed": _finished(a_success()),
    "succeed without a result": _finished(a_success(None)),
    "fail for now": _finished(a_fault()),
    "fail": _finished(a_fault(retryable=False)),
    "promote": lambda task, at, token: lifecycle.promote(task, now=at, token=token),
    "cancel": lambda task, at, token: lifecycle.cancel(task, now=at, token=token, by=OPERATOR),
    "purge": lambda task, at, token: lifecycle.purge(task, now=at, token=token),
    "purge alone": lambda task, at, token: lifecycle.purge(task, now=at, token=token, audit=an_audit_entry()),
    "requeue": lambda task, at, token: lifecycle.requeue(task, now=at, token=token, by=OPERATOR),
    "discard": lambda task, at, token: lifecycle.discard(task, now=at, token=token, by=OPERATOR),
    "rehome": lambda task, at, token: lifecycle.rehome(task, now=at, token=token),
    "reschedule": lambda task, at, token: lifecycle.reschedule(task, now=at, token=token, audit=an_audit_entry()),
    "restore": _restored,
    "rebury": _reburied,
    "name again": _named_again,
}


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    number = draw(st.integers(0, 9))
    status = draw(st.sampled_from(TaskStatus))
    fields: dict[str, Any] = {
        "queue": f"queue-{number}",
        "task_type": f"type-{number}",
        "priority": number,
        "timeout": timedelta(seconds=1 + number),
        "available_at": NOW + timedelta(seconds=number),
        "payload": f'{{"n": {number}}}',
        "idempotency_key": draw(st.none() | st.just(f"key-{number}")),
        "cancel_requested": draw(st.booleans()),
    }
    task = a_task(status=status, **fields)
    without = draw(st.sampled_from(["", "", "version", "entry_id", "dlq_entry_id"]))
    return replace(task, **{without: "" if without == "version" else None}) if without else task


@st.composite
def changes(draw: st.DrawFn) -> Change:
    at = NOW + timedelta(milliseconds=draw(st.integers(0, 100_000)))
    decide = DECISIONS[draw(st.sampled_from(sorted(DECISIONS)))]
    decided = decide(draw(tasks()), at, a_token())
    assume(isinstance(decided, Change))
    assert isinstance(decided, Change)
    was = decided.before or decided.after
    assume(was.receipt is not None or NEEDS_ENTRY.isdisjoint(decided.requires))
    return decided


submissions: Final = st.builds(
    a_change,
    queue=st.sampled_from(["queue-1", "queue-2"]),
    priority=st.integers(0, 9),
    idempotency_key=st.sampled_from([None, "key-1", "key-2"]),
    delay=st.sampled_from([timedelta(), timedelta(seconds=5)]),
    ttl=st.sampled_from([None, timedelta(seconds=60)]),
)


@given(change=changes() | submissions)
def test_a_change_is_sent_the_same_by_a_form_that_was_described_for_another(change: Change) -> None:
    assert sent(change, forms=new_forms(OPTIONS)) == sent(change, forms=SHARED)


@given(
    change=submissions,
    limits=st.builds(BrokerLimits, queue_depth=st.integers(1, 3)),
    replaces=st.sampled_from([None, "one record", "another"]),
)
def test_a_submission_is_sent_the_same_by_a_form_that_was_described_for_another(
    change: Change, limits: BrokerLimits, replaces: str | None
) -> None:
    fresh = sent(change, forms=new_forms(OPTIONS), limits=limits, replaces=replaces)

    assert fresh == sent(change, forms=SHARED, limits=limits, replaces=replaces)


def test_a_process_keeps_no_more_than_so_many_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(description, "FORMS_KNOWN", 3)
    forms = new_forms(OPTIONS)

    for count, status in enumerate((TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING)):
        change = lifecycle.cancel(a_task(status=status), now=NOW, token=a_token(), by=OPERATOR)
        assert isinstance(change, Change)
        sent(change, forms=forms)
        assert count % 3 + 1 == len(forms)
