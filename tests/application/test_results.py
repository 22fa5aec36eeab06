"""What becomes of what a handler returned."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import Any, NoReturn

import msgspec
import pytest
from msgspec import Raw

from dtq.application.results import outcome_of
from dtq.domain.json_text import MAX_DEPTH
from dtq.domain.outcome import AttemptResult, Failed, Outcome, Succeeded

LIMIT = 8192


def tower(levels: int) -> str:
    return "[" * levels + "]" * levels


def problem_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    assert (AttemptResult.ERROR, False) == (outcome.kind, outcome.failure.retryable)
    assert "ResultNotSerializable" == outcome.failure.error_class
    return outcome.failure.error_message


@pytest.mark.parametrize(
    "value",
    [
        Raw(b'{"a": '),
        {"x": Raw(b'1}, "status":"forged"')},
        Raw(b"NaN"),
        Raw(b"1e999"),
        Raw(b'"\xff"'),
        Raw(b""),
        Raw(tower(4000).encode()),
    ],
)
def test_text_of_a_handlers_own_that_is_no_json_fails_for_good(value: object) -> None:
    assert problem_of(outcome_of(value, max_bytes=LIMIT))


def test_text_of_a_handlers_own_that_is_json_is_kept_as_it_is() -> None:
    assert Succeeded(result='{"x":[1.50, {"b":1,"a":2}]}') == outcome_of(
        {"x": Raw(b'[1.50, {"b":1,"a":2}]')}, max_bytes=LIMIT
    )


@pytest.mark.parametrize("made", [lambda text: Raw(text.encode()), msgspec.json.decode], ids=["text", "value"])
def test_a_result_nests_as_deep_as_a_payload_may_and_no_deeper(made: Callable[[str], Any]) -> None:
    assert Succeeded(result=tower(MAX_DEPTH)) == outcome_of(made(tower(MAX_DEPTH)), max_bytes=LIMIT)

    deeper = outcome_of(made(tower(MAX_DEPTH + 1)), max_bytes=LIMIT)

    assert "JsonProblem: nested deeper than 64 levels" == problem_of(deeper)


@pytest.mark.parametrize(
    "value", [Raw(b"[" * 11), msgspec.json.decode(tower(70)), "x" * 20], ids=["no JSON", "deep", "text"]
)
def test_what_is_too_large_is_dropped_without_a_look_at_it(value: object) -> None:
    assert Succeeded(result=None, truncated=True) == outcome_of(value, max_bytes=10)


class Slippery(str):
    """Text that cannot be cut."""

    __slots__ = ()

    def __getitem__(self, _: object) -> NoReturn:
        raise ValueError("hands off")

    def __format__(self, _: str) -> NoReturn:
        raise ValueError("hands off")


class Unsayable(Exception):
    """An error whose text cannot be cut."""

    def __str__(self) -> str:
        return Slippery("secretive")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (Unsayable(), "Unsayable: secretive"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt: "),
    ],
    ids=repr,
)
def test_whatever_an_object_raises_while_it_is_read_its_result_is_no_json(reason: BaseException, message: str) -> None:
    class Nowhere(tzinfo):
        def utcoffset(self, _: datetime | None) -> NoReturn:
            raise reason

        dst = tzname = utcoffset

    assert message == problem_of(outcome_of(datetime(2026, 1, 1, tzinfo=Nowhere()), max_bytes=LIMIT))
