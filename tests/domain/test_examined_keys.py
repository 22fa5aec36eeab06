"""Examination of idempotency records: what they must tell, and what guards a living task."""

import pytest
from msgspec.structs import replace

from dtq.domain.acts import RewriteKey
from dtq.domain.facts import KeyFact
from dtq.domain.findings import Kind
from dtq.domain.idempotency import IdempotencyRecord, RecordState
from dtq.domain.remedies import remedy
from dtq.domain.retention import Retention, record_lifetime
from dtq.domain.task import Task, TaskId
from tests.domain.patients import DEAD, ENDED, PENDING, QUEUED, RUNNING, USING, a_key, at_home, found, keyed, kinds
from tests.factories import NOW

OTHER_TASK = replace(QUEUED, task_id=TaskId("b" * 32))

OF_OTHERS = (
    a_key(OTHER_TASK, state=RecordState.PROCESSING),
    a_key(None, state=RecordState.PROCESSING),
    a_key(None, state=RecordState.PROCESSING, is_read=False),
)
"""What may stand under the key of another task: the name of one without it, of one that is gone, or no name."""


@pytest.mark.parametrize(
    ("task", "state", "is_found"),
    [
        (keyed(QUEUED), RecordState.PROCESSING, False),
        (keyed(ENDED), RecordState.COMPLETED, False),
        (keyed(DEAD), RecordState.FAILED, False),
        (None, RecordState.COMPLETED, False),
        (None, RecordState.PROCESSING, True),
        (keyed(ENDED), RecordState.PROCESSING, True),
        (keyed(QUEUED), RecordState.FAILED, True),
        (QUEUED, RecordState.PROCESSING, True),
    ],
)
def test_a_key_must_tell_of_its_task(task: Task | None, state: RecordState, *, is_found: bool) -> None:
    assert ([Kind.KEY] if is_found else []) == kinds(a_key(task, state=state))


def test_a_key_tells_of_its_task_again_or_is_removed() -> None:
    (wrong,) = found(a_key(keyed(ENDED), state=RecordState.PROCESSING))
    (leaked,) = found(a_key(None, state=RecordState.PROCESSING))
    right, none = remedy(wrong, using=USING), remedy(leaked, using=USING)

    assert isinstance(right, RewriteKey)
    assert isinstance(none, RewriteKey)
    record = IdempotencyRecord(task_id=ENDED.task_id, state=RecordState.COMPLETED, updated_at=NOW)
    assert (record, record_lifetime(ENDED, at=NOW, retention=Retention())) == (right.record, right.lifetime)
    assert none.record is None


@pytest.mark.parametrize("task", [QUEUED, PENDING, RUNNING])
def test_a_key_of_a_living_task_has_its_record_again(task: Task) -> None:
    (finding,) = found(replace(at_home(keyed(task)), unkeyed=True))

    assert (Kind.KEY, task.task_id, task.task_id) == (finding.kind, finding.subject, finding.task_id)
    assert "nothing is stored" in finding.detail
    written = remedy(finding, using=USING)
    assert isinstance(written, RewriteKey)
    assert written.record is not None
    assert (task.task_id, "") == (written.record.task_id, written.text)
    assert RecordState.PROCESSING is written.record.state


@pytest.mark.parametrize("stored", OF_OTHERS)
def test_a_key_that_another_has_guards_the_living_task_again(stored: KeyFact) -> None:
    (finding,) = found(replace(at_home(keyed(RUNNING)), key=stored))

    assert (Kind.KEY, RUNNING.task_id) == (finding.kind, finding.subject)
    assert "guards nothing" in finding.detail
    written = remedy(finding, using=USING)
    assert isinstance(written, RewriteKey)
    assert written.record is not None
    assert (RUNNING.task_id, stored.text) == (written.record.task_id, written.text)


@pytest.mark.parametrize(
    "stored",
    [
        a_key(keyed(OTHER_TASK), state=RecordState.PROCESSING),
        a_key(keyed(OTHER_TASK), state=RecordState.FAILED),
        a_key(None, state=RecordState.COMPLETED),
    ],
    ids=["its owner lives", "it tells wrong of its owner", "its owner ended and is gone"],
)
def test_a_key_that_a_later_task_took_over_is_its_own(stored: KeyFact) -> None:
    assert [] == kinds(replace(at_home(keyed(RUNNING)), key=stored))


def test_a_key_of_an_ended_task_may_be_forgotten() -> None:
    assert [] == kinds(replace(at_home(keyed(ENDED)), unkeyed=True))
    assert [[]] * 3 == [kinds(replace(at_home(keyed(ENDED)), key=stored)) for stored in OF_OTHERS]


def test_what_is_no_record_under_a_key_is_removed() -> None:
    (finding,) = found(a_key(None, state=RecordState.PROCESSING, is_read=False))

    assert "cannot be read" in finding.detail
