"""What is found of a task whose record names no dead letter, and what repairs it."""

from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.remedies import remedy
from tests.domain.patients import DEAD, OTHER, USING, found, of_task


def test_a_dead_letter_that_its_record_does_not_name_is_named_again_and_none_is_written_unasked() -> None:
    task = replace(DEAD, dlq_entry_id=None)
    (alone,), (lettered,) = found(of_task(task)), found(of_task(task, letter=OTHER))

    change = remedy(lettered, using=USING)

    assert "6-0 names it" in lettered.detail
    assert isinstance(change, Change)
    assert (replace(task, dlq_entry_id=OTHER, version=USING.token), USING.audit) == (change.after, change.audit)
    assert remedy(alone, using=USING) is None
