"""Examination: what lasts too long, or comes at another time than it should."""

from datetime import timedelta

import pytest

from dtq.domain.facts import NameFact, Role
from dtq.domain.findings import Kind
from dtq.domain.remedies import Shorten, remedy
from dtq.domain.retention import LEAD_TERM
from tests.domain.patients import USING, found, kinds


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
