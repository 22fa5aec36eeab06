"""What strangers send is judged with little effort, whatever it is made of."""

import json as stdlib_json
import sys
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from types import FrameType
from typing import Any

import pytest
from msgspec import json

from dtq.adapters.system import SystemClock
from dtq.domain import json_text
from dtq.domain.json_text import MAX_DEPTH, is_too_deep, object_problem, parse
from tests.domain.test_json_text import nested


def steps(work: Callable[[], object]) -> int:
    """How many lines of the module are run; whatever else may run in between, such as a finalizer, does not count."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != json_text.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("piece", ["[],", "{},", '"",', '{"a":[]},', '["\\"[\\\\"],', "[[[[]]]],"])
def test_the_depth_is_found_by_as_many_steps_however_much_there_is(piece: str) -> None:
    texts = [f'{{"a":[{piece * count}{"[" * 62 + "]" * 62}]}}' for count in (100, 10_000)]

    few, many = (steps(partial(is_too_deep, text)) for text in texts)
    assert 0 < many == few
    assert [False, False] == [is_too_deep(text) for text in texts]


def test_the_depth_is_that_of_one_bracket_after_the_other() -> None:
    for text in (nested(64), nested(65), "[" * 65, "]" * 9 + "[" * 65, "[]" * 99, "[" * 40 + "]" * 40 + "[" * 64):
        depth = list(accumulate({"[": 1, "{": 1, "]": -1, "}": -1}.get(letter, 0) for letter in text))
        assert (max(depth) > MAX_DEPTH) is is_too_deep(text), text


NUMBERS = "1.5, -0.0, 1e-400, 5, 123456789012345678901234567890, 1.7976931348623157E+308, -2.5e-324"


def test_numbers_beside_one_that_is_almost_too_large_read_as_ever() -> None:
    assert stdlib_json.dumps(json.decode(f"[{NUMBERS}, 0.1]")) == stdlib_json.dumps(parse(f"[{NUMBERS}, 1e-1]"))


@pytest.mark.parametrize("number", ["1e309", "-1e310", "1.8e308", "9e000400", "1e300000"])
def test_one_that_is_too_large_beside_it_is_refused(number: str) -> None:
    assert "not valid JSON: Number out of range" in (object_problem(f'{{"a":[1e308, {number}]}}') or "")


def test_numbers_that_are_almost_too_large_take_no_hundred_times_as_long() -> None:
    clock = SystemClock()

    def fastest(number: str) -> float:
        text, times = f"[{','.join([number] * 5_000)}]", []
        for _ in range(5):
            began_at = clock.monotonic()
            parse(text)
            times.append(clock.monotonic() - began_at)
        return min(times)

    assert fastest("1e308") < 60 * fastest("1e288")
