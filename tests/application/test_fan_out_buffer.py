from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtq.application.fan_out_buffer import CRITICAL, Block, Buffer, Item
from dtq.domain.events import EventType
from dtq.domain.status import TERMINAL


def a_block(text: str, *, after: int = 0) -> Block[str]:
    """Messages named by letters; upper-case ones are critical."""
    return Block([Item(after + number, letter, letter.isupper()) for number, letter in enumerate(text)])


def filled(text: str, *, limit: int) -> Buffer[str]:
    buffer: Buffer[str] = Buffer(limit)
    for number, letter in enumerate(text):
        buffer.put(a_block(letter, after=number))
    return buffer


def test_the_events_that_end_a_task_are_critical() -> None:
    assert {f"TASK_{status.name}" for status in TERMINAL} == CRITICAL
    assert set(EventType) > CRITICAL


@pytest.mark.parametrize(
    ("given", "kept", "dropped"),
    [
        ("aBcD", "aBcD", 0),
        ("abcde", "abcd", 1),
        ("ABCDe", "ABCD", 1),
        ("abCdE", "bCdE", 1),
        ("aBcdEF", "BdEF", 2),
        ("abcdEFGH", "EFGH", 4),
        ("abcdEFGHi", "EFGH", 5),
    ],
)
def test_a_full_buffer_gives_up_what_is_not_critical(given: str, kept: str, dropped: int) -> None:
    buffer = filled(given, limit=4)

    assert (kept, dropped, False) == ("".join(buffer.take(9)), buffer.take_dropped(), buffer.has_overflowed)


def test_a_buffer_full_of_critical_messages_overflows_with_the_next_one() -> None:
    assert not filled("ABCD", limit=4).has_overflowed
    assert filled("ABCDE", limit=4).has_overflowed


def test_what_was_dropped_is_told_once() -> None:
    buffer = filled("abcdef", limit=4)

    assert (2, 0) == (buffer.take_dropped(), buffer.take_dropped())


def test_taking_makes_room() -> None:
    buffer = filled("abcd", limit=4)

    taken = buffer.take(3)
    buffer.put(a_block("XY", after=4))

    assert (["a", "b", "c"], ["d", "X", "Y"], 0) == (taken, buffer.take(9), buffer.take_dropped())


def test_a_cleared_buffer_is_empty() -> None:
    buffer = filled("aB", limit=4)

    buffer.clear()

    assert ([], 4) == (buffer.take(9), buffer.room)


class Model:
    """The policy as one list, message by message."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: list[str] = []
        self.dropped = 0
        self.has_overflowed = False

    def put(self, letters: str) -> None:
        for letter in letters:
            if len(self.kept) < self.limit:
                self.kept.append(letter)
                continue
            self.dropped += 1
            if letter.isupper():
                oldest = next((at for at, kept in enumerate(self.kept) if kept.islower()), None)
                if oldest is None:
                    self.has_overflowed = True
                else:
                    del self.kept[oldest]
                    self.kept.append(letter)

    def take(self, number: int) -> Sequence[str]:
        taken, self.kept = self.kept[:number], self.kept[number:]
        return taken


STEPS = st.lists(st.text("abXY", max_size=6) | st.integers(0, 4), max_size=20)


@given(limit=st.integers(1, 6), steps=STEPS)
def test_whole_blocks_are_treated_as_one_message_after_the_other(limit: int, steps: list[str | int]) -> None:
    buffer: Buffer[str] = Buffer(limit)
    model = Model(limit)
    sequence = 0

    for step in steps:
        if isinstance(step, int):
            assert model.take(step) == buffer.take(step)
        else:
            buffer.put(a_block(step, after=sequence))
            model.put(step)
            sequence += len(step)
        assert (len(model.kept), model.has_overflowed) == (len(buffer), buffer.has_overflowed)

    assert (model.dropped, model.take(99)) == (buffer.take_dropped(), buffer.take(99))
