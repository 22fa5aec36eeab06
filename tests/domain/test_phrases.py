from datetime import UTC, datetime, timedelta

import pytest

from dtq.domain.phrases import counted, moment_text, span, tenths


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0.0 s"),
        (0, "0.0 s"),
        (0.26, "0.3 s"),
        (9.94, "9.9 s"),
        (10, "10 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (7500, "2 h 5 min"),
        (86_400, "1 d"),
        (100_000, "1 d 3 h"),
    ],
)
def test_a_span_has_two_units(seconds: float, text: str) -> None:
    assert text == span(timedelta(seconds=seconds))


def test_a_moment_is_told_to_the_second() -> None:
    assert "2026-01-02 03:04:05Z" == moment_text(datetime(2026, 1, 2, 3, 4, 5, 999_999, tzinfo=UTC))


def test_one_is_told_from_many() -> None:
    assert ["0 slots", "1 slot", "2 slots"] == [counted(number, "slot") for number in range(3)]


def test_programs_get_tenths() -> None:
    assert 1.3 == tenths(timedelta(milliseconds=1260))
