"""Lines of a pipe, however its writer cuts them."""

import os
from collections.abc import Sequence

import pytest

from dtq.entrypoints.cli.lines import Line, Lines


async def read(*parts: bytes, longest: int = 100) -> list[Line]:
    """What is read of a pipe that *parts* are written to, each read before the next is written."""
    reading, writing = os.pipe()
    found: list[Line] = []
    try:
        rest = list(parts)
        os.write(writing, rest.pop(0))
        async for block in Lines(reading, longest=longest).blocks():
            found += block
            if rest:
                os.write(writing, rest.pop(0))
            elif writing >= 0:
                os.close(writing)
                writing = -1
    finally:
        os.close(reading)
    return found


def texts(lines: Sequence[Line]) -> list[tuple[int, bytes | None]]:
    return [(line.number, line.text) for line in lines]


@pytest.mark.parametrize(
    "parts",
    [
        [b"one\ntwo\nthree\n"],
        [b"one\ntwo\nthree"],
        [b"o", b"ne", b"\ntw", b"o\n", b"three", b"\n"],
        [b"\xef\xbb\xbfone\ntwo\nthree\n"],
        [b"\xef", b"\xbb\xbfone\ntwo\nthree\n"],
    ],
)
async def test_lines_are_whole_however_they_come(parts: list[bytes]) -> None:
    assert [(1, b"one"), (2, b"two"), (3, b"three")] == texts(await read(*parts))


async def test_blank_lines_are_counted_and_passed_over() -> None:
    assert [(2, b"two"), (5, b"five\r")] == texts(await read(b"\ntwo\n \t\n\r\nfive\r\n"))


@pytest.mark.parametrize("parts", [[b"12345678901\nok\n"], [b"1234567", b"8901", b"\nok\n"], [b"ok\n12345678901"]])
async def test_a_line_that_is_too_long_is_told_and_not_kept(parts: list[bytes]) -> None:
    found = await read(*parts, longest=10)

    [long_line] = [line for line in found if line.text is None]
    assert 11 == long_line.size
    assert [b"ok"] == [line.text for line in found if line.text is not None]


async def test_a_line_of_the_longest_length_is_kept() -> None:
    assert [(1, b"1234567890")] == texts(await read(b"1234567890\n", longest=10))
