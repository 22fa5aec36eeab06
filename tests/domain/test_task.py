import pytest
from msgspec.structs import replace

from dtq.domain.status import HOMES, Place, TaskStatus
from dtq.domain.task import NO_VERSION, EntryId, QueueName, Receipt, place_of
from tests.domain.factories import ALIVE, ENDED, ENTRY, STATUSES, a_task


@pytest.mark.parametrize("status", STATUSES)
def test_a_task_is_where_its_status_lives(status: TaskStatus) -> None:
    assert HOMES[status] is place_of(a_task(status))


def test_a_discarded_dead_letter_is_nowhere() -> None:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), discarded=True)

    assert Place.NOWHERE is place_of(task)


def test_no_task_is_nowhere() -> None:
    assert Place.NOWHERE is place_of(None)


@pytest.mark.parametrize("status", STATUSES)
def test_a_task_is_terminal_once_it_has_ended(status: TaskStatus) -> None:
    assert (status in ENDED) == a_task(status).is_terminal
    assert (status in ALIVE) != a_task(status).is_terminal


def test_a_task_without_version_is_not_stored() -> None:
    task = a_task()

    assert (True, False) == (task.is_stored, replace(task, version=NO_VERSION).is_stored)


def test_the_receipt_is_the_address_of_the_live_entry() -> None:
    task = replace(a_task(), queue=QueueName("mail"), priority=9, entry_id=EntryId("7-1"))

    assert Receipt(QueueName("mail"), 9, EntryId("7-1")) == task.receipt


def test_a_task_without_entry_has_no_receipt() -> None:
    assert a_task(TaskStatus.RETRYING).receipt is None


def test_receipts_of_two_streams_differ_even_with_the_same_id() -> None:
    queue = QueueName("default")

    assert Receipt(queue, 5, ENTRY) != Receipt(queue, 6, ENTRY)
    assert Receipt(queue, 5, ENTRY) != Receipt(QueueName("mail"), 5, ENTRY)
