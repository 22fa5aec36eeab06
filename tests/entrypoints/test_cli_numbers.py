"""The command line takes the numbers that the API takes, in the same spelling, and repeats no long ones."""

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from dtq.entrypoints.cli import main
from dtq.entrypoints.cli.numbers import integer, number, positive, seconds
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed

__all__ = ["backend", "printed"]

READERS = [integer, positive, number, seconds]
ARABIC, WIDE = "\u0663", "\uff12"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "text",
    ["", " ", ARABIC, WIDE, " 5", "5 ", "1_0", "+5", "0x5", "05", "five", "inf", "nan", "-Infinity", "5\n", "true"],
)
def test_what_is_no_number_of_json_is_none_here(read: Callable[[str], float], text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"must be (an integer|a number), not "):
        read(text)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("text", "value"), [("5", 5), ("5.0", 5), ("1e1", 10)])
def test_what_is_one_is_read(read: Callable[[str], float], text: str, value: float) -> None:
    assert value == read(text)


def test_each_has_its_bounds() -> None:
    assert (-1, -1.5, 0.25) == (integer("-1"), number("-1.5"), seconds("0.25"))
    for read, text in ((integer, "1.5"), (positive, "0"), (positive, "-1"), (seconds, "-1"), (seconds, "31536001")):
        with pytest.raises(ArgumentTypeError):
            read(text)


@pytest.mark.parametrize("read", READERS)
def test_a_refusal_is_brief_and_on_one_line(read: Callable[[str], float]) -> None:
    for text in ("9" * 5_000 + "x", "\n" * 5_000):
        with pytest.raises(ArgumentTypeError) as refused:
            read(text)
        assert len(str(refused.value)) < 150
        assert "\n" not in str(refused.value)


OPTIONS = [
    ("submit", "--type", "greet", "--payload", "{}", "--priority"),
    ("submit", "--type", "greet", "--payload", "{}", "--max-attempts"),
    ("submit", "--type", "greet", "--payload", "{}", "--timeout-ms"),
    ("submit", "--type", "greet", "--payload", "{}", "--delay-seconds"),
    ("submit", "--type", "greet", "--payload", "{}", "--wait"),
    ("submit", "--type", "greet", "--file", "none", "--patience"),
    ("list", "--limit"),
    ("watch", "--count"),
]


@pytest.mark.parametrize("command", OPTIONS, ids=lambda command: command[-1])
@pytest.mark.usefixtures("backend")
def test_every_option_that_is_a_number_is_read_so(printed: Printed, command: tuple[str, ...]) -> None:
    for text in (ARABIC, " 5", "1_0", "9" * 5_000 + "x"):
        with pytest.raises(SystemExit) as ended:
            main([*command, text])

        error = printed()[1]
        assert (2, True) == (ended.value.code, f"argument {command[-1]}: must be" in error)
        assert len(error) < 2_000
