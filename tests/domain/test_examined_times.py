"""Examination: what lasts too long, or comes at another time than it should."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.acts import Persist, Prolong, Shorten
from dtq.domain.change import Change
from dtq.domain.decision import Drop
from dtq.domain.examination import CONSUMER_AGE
from dtq.domain.facts import ConsumerFact, MemberFact, NameFact, Record, Role
from dtq.domain.findings import Kind
from dtq.domain.lifecycle import reschedule
from dtq.domain.remedies import remedy
from dtq.domain.retention import LEAD_TERM, SHORTEST, record_lifetime, task_lifetime
from dtq.domain.task import Task
from dtq.domain.timing import CLOCK_TOLERANCE
from tests.domain.patients import BEARINGS, ENDED, PENDING, QUEUED, USING, found, kinds
from tests.factories import NOW, QUEUE, WORKER


@pytest.mark.parametrize(
    ("role", "left", "is_found"),
    [
        (Role.LOCK, LEAD_TERM, False),
        (Role.LOCK, LEAD_TERM + timedelta(milliseconds=1), True),
        (Role.TASK, timedelta(days=9), False),
    ],
)
def test_no_lock_lives_for_longer_than_its_term(role: Role, left: timedelta, *, is_found: bool) -> None:
    assert ([Kind.LOCK] if is_found else []) == kinds(NameFact(name="dtq:x", role=role, lifetime=left))


@pytest.mark.parametrize("is_eternal", [True, False])
def test_a_lock_is_cut_to_its_term(*, is_eternal: bool) -> None:
    fact = NameFact(name="dtq:x", role=Role.LOCK, is_eternal=is_eternal, lifetime=timedelta(days=365))
    (finding,) = found(fact)

    assert Shorten("dtq:x", LEAD_TERM) == remedy(finding, using=USING)


LATER = timedelta(hours=1)
MOMENT = timedelta(milliseconds=1)
WAITS = replace(PENDING, available_at=NOW + LATER)
OVERDUE = replace(PENDING, available_at=NOW - LATER)


@pytest.mark.parametrize(
    ("task", "due", "is_found"),
    [
        (WAITS, NOW + LATER, False),
        (WAITS, NOW + LATER + MOMENT, True),
        (WAITS, NOW + LATER - MOMENT, True),
        (OVERDUE, NOW - LATER, False),
        (OVERDUE, NOW + CLOCK_TOLERANCE, False),
        (OVERDUE, NOW + CLOCK_TOLERANCE + MOMENT, True),
        (QUEUED, NOW, False),
    ],
)
def test_a_task_is_scheduled_for_its_own_time_or_since_it_came_back(
    task: Task, due: datetime, *, is_found: bool
) -> None:
    wrong = [one for one in kinds(MemberFact(task.task_id, Record(task), due)) if one is not Kind.STRAY_MEMBER]

    assert ([Kind.MISTIMED] if is_found else []) == wrong


def test_nothing_was_taken_on_loan_in_the_future() -> None:
    latest = NOW + CLOCK_TOLERANCE

    assert [] == kinds(MemberFact(WAITS.task_id, Record(WAITS), claimed_at=latest))
    assert [Kind.MISTIMED] == kinds(MemberFact(WAITS.task_id, Record(WAITS), claimed_at=latest + MOMENT))


def test_what_is_on_loan_is_not_scheduled_as_well() -> None:
    (finding,) = found(MemberFact(WAITS.task_id, Record(WAITS), WAITS.available_at, NOW))

    assert (Kind.MISTIMED, True) == (finding.kind, "as well" in finding.detail)


def test_what_is_scheduled_at_another_time_is_scheduled_again_as_it_is() -> None:
    (finding,) = found(MemberFact(WAITS.task_id, Record(WAITS), due=NOW))
    change = remedy(finding, using=USING)

    assert isinstance(change, Change)
    assert (WAITS, replace(WAITS, version=USING.token), USING.audit) == (change.before, change.after, change.audit)


def test_what_waits_for_no_time_is_not_scheduled() -> None:
    assert isinstance(reschedule(QUEUED, now=NOW, token=USING.token, audit=USING.audit), Drop)


DELAY = timedelta(days=2)
DELAYED = replace(PENDING, available_at=NOW + DELAY)
A_MOMENT = timedelta(milliseconds=1)


@pytest.mark.parametrize("role", [Role.TASK, Role.KEY])
@pytest.mark.parametrize(
    ("task", "least"), [(QUEUED, SHORTEST), (DELAYED, SHORTEST + DELAY), (ENDED, A_MOMENT), (None, A_MOMENT)]
)
def test_what_lives_by_a_task_lasts_beyond_it(role: Role, task: Task | None, least: timedelta) -> None:
    fact = NameFact(name="dtq:x", role=role, lifetime=least, record=Record(task))

    assert [] == kinds(fact)
    if task in (QUEUED, DELAYED):
        assert [Kind.SHORT] == kinds(replace(fact, lifetime=least - A_MOMENT))


def test_what_is_too_short_gets_what_it_would_get_now() -> None:
    for role, lifetime in ((Role.TASK, task_lifetime), (Role.KEY, record_lifetime)):
        (finding,) = found(NameFact(name="dtq:x", role=role, lifetime=A_MOMENT, record=Record(DELAYED)))

        needed = lifetime(DELAYED, at=NOW, retention=USING.retention)
        assert Prolong("dtq:x", needed, DELAYED.task_id, DELAYED.version) == remedy(finding, using=USING)
        assert DELAYED.task_id == finding.task_id


def test_what_is_to_stay_has_no_lifetime() -> None:
    (finding,) = found(NameFact(name="dtq:queues", role=Role.BOUNDED, lifetime=timedelta(days=900)))

    assert (Kind.SHORT, Persist("dtq:queues")) == (finding.kind, remedy(finding, using=USING))
    assert [] == kinds(NameFact(name="dtq:queues", role=Role.BOUNDED, is_eternal=True))


def test_a_consumer_stays_as_long_as_nobody_sweeps() -> None:
    consumer = ConsumerFact(queue=QUEUE, worker=WORKER, owns=0, idle=timedelta(days=9), is_known=False)

    assert [] == kinds(consumer, bearings=replace(BEARINGS, swept_since=None))
    (young,) = found(consumer, bearings=replace(BEARINGS, swept_since=NOW - timedelta(seconds=30)))
    assert CONSUMER_AGE - timedelta(seconds=30) == young.ripe_in
