"""Changes that cannot be written: a defect of who decided them, which is told before anything is sent."""

import pytest
from msgspec.structs import replace

from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.status import TaskStatus
from dtq.ports.backend import BackendOptions
from tests.adapters.redis.sent import new_forms, sent
from tests.factories import NOW, a_change, a_task, a_token

FORMS = new_forms(BackendOptions())


def test_a_change_that_requires_something_of_an_entry_and_names_none_is_not_sent() -> None:
    task = a_task(status=TaskStatus.QUEUED, entry_id=None)
    change = lifecycle.purge(task, now=NOW, token=a_token())
    assert isinstance(change, Change)

    with pytest.raises(ValueError, match=f"task {task.task_id} names no entry"):
        sent(change, forms=FORMS)


def test_a_new_task_whose_payload_nobody_has_is_not_sent() -> None:
    change = a_change()

    with pytest.raises(ValueError, match=f"{change.after.task_id}: neither the change nor the store has a payload"):
        sent(replace(change, after=replace(change.after, payload=None)), forms=FORMS)
