from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec import Raw, convert, json

from dtq.domain.json_text import MAX_DEPTH, JsonProblem, is_too_deep, object_problem, parse_object, written

HOSTILE_BYTES = 262_144
"""The size of the largest payload by default."""


def nested(levels: int) -> str:
    """An object that is *levels* deep, itself included."""
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        ' {"a" : 1}\n',
        '{"a":-0,"b":-0.0}',
        '{"a":12345678901234567890123456789012345678901234567890}',
        '{"a":1e308,"b":1e-400}',
        '{"a":"\\ud83d\\ude00","b":"\\u0000","c":"\u2028"}',
        '{"a":1,"a":2}',
        '{"a":null,"b":[true,false,{}]}',
    ],
)
def test_an_object_is_accepted(text: str) -> None:
    assert object_problem(text) is None


@pytest.mark.parametrize("text", ["[]", "1", '"text"', "null", "true"])
def test_anything_but_an_object_is_refused(text: str) -> None:
    assert "must be a JSON object" == object_problem(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        '{"a"',
        '{"a":1',
        '{"a":1,}',
        "{'a':1}",
        "{a:1}",
        '{"a":01}',
        '{"a":+1}',
        '{"a":.5}',
        '{"a":1} {}',
        '\ufeff{"a":1}',
        '{"a":"\n"}',
        '{"a":"\\x"}',
        '{/* */"a":1}',
        "{1:2}",
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    problem = object_problem(text)

    assert problem is not None
    assert problem.startswith("not valid JSON: ")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e999999999999", "9" * 5000])
def test_a_number_that_cannot_be_kept_is_refused(number: str) -> None:
    problem = object_problem(f'{{"a":{number}}}')

    assert problem is not None
    assert problem.startswith("not valid JSON: ")


@pytest.mark.parametrize(
    "string",
    ['"\ud800"', f'"{chr(0xDFFF)}"', '"\\ud800"', '"\\udc00"', '"\\ud800x"', '"\\ud800\\u0041"', '"\\ud800\\ud800"'],
)
def test_a_lone_surrogate_is_refused(string: str) -> None:
    for text in (f'{{"a":{string}}}', f"{{{string}:1}}"):
        problem = object_problem(text)
        assert problem is not None
        assert problem.startswith("not valid JSON: ")


def test_the_last_of_duplicate_members_counts() -> None:
    assert {"a": 2} == parse_object('{"a":1,"a":2}')


def test_a_big_integer_keeps_its_digits() -> None:
    assert {"a": 12345678901234567890123} == parse_object('{"a":12345678901234567890123}')


def test_a_problem_raises_where_the_value_is_asked_for() -> None:
    with pytest.raises(JsonProblem, match="must be a JSON object"):
        parse_object("[]")


def test_sixty_four_levels_are_accepted_and_sixty_five_are_not() -> None:
    assert object_problem(nested(MAX_DEPTH)) is None
    assert "nested deeper than 64 levels" == object_problem(nested(MAX_DEPTH + 1))


def test_objects_nest_as_arrays_do() -> None:
    assert not is_too_deep('{"a":' * 64 + "1" + "}" * 64)
    assert is_too_deep('{"a":' * 65 + "1" + "}" * 65)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert object_problem('{"a":[' + ",".join(["[]"] * 1000) + "]}") is None


@pytest.mark.parametrize(
    "string", ["[" * 200, '\\"' + "[" * 200, '\\\\\\"' + "{" * 200, "]" * 100 + "[" * 200, "\\n[" * 100]
)
def test_brackets_inside_strings_do_not_nest(string: str) -> None:
    assert object_problem(f'{{"a":"{string}","b":"{string}"}}') is None


@pytest.mark.parametrize("string", ["\\\\", "a\\\\", "]\\\\"])
def test_brackets_after_a_string_that_ends_in_a_backslash_do_nest(string: str) -> None:
    assert "nested deeper than 64 levels" == object_problem(f'{{"a":"{string}","b":{"[" * 64 + "]" * 64}}}')


def test_nesting_without_end_is_refused_before_it_is_parsed() -> None:
    assert "nested deeper than 64 levels" == object_problem("[" * HOSTILE_BYTES)


@pytest.mark.timeout(5)
@pytest.mark.parametrize(
    "hostile",
    ["[" * 65 + '"' + '\\"' * (HOSTILE_BYTES // 2), '{"a":"' + "[" * 65 + '", "\\' + '"\\' * (HOSTILE_BYTES // 2)],
)
def test_a_string_without_end_takes_no_long_time(hostile: str) -> None:
    assert object_problem(hostile) is not None


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud800"}', '{"a": "\\udc00x"}', '{"a": "\\\\\\uD83D"}', '{"a": "\ud800"}'], ids=ascii
)
def test_a_lone_surrogate_is_called_by_its_name(text: str) -> None:
    assert "lone surrogate" in (object_problem(text) or "")


@pytest.mark.parametrize("text", ['{"a": "\\ud83d\\ude00", "b": NaN}', '{"a": "\\\\ud800", "b": NaN}'])
def test_nothing_else_is_called_a_lone_surrogate(text: str) -> None:
    assert "lone surrogate" not in (object_problem(text) or "lone surrogate")


NAN, INFINITY = float("nan"), float("inf")


@dataclass
class Measured:
    length: float


@pytest.mark.parametrize(
    "value",
    [NAN, [1, -INFINITY], ({"a": NAN},), {NAN: 1}, {INFINITY: 1}, {-INFINITY: 1}, [{"a": {NAN: "x"}}], Measured(NAN)],
    ids=repr,
)
def test_what_is_not_finite_is_not_written_wherever_it_stands(value: object) -> None:
    with pytest.raises(ValueError, match="numbers must be finite"):
        written(value)


@dataclass
class Enveloped:
    inner: Raw


NO_JSON = [
    b"",
    b"{",
    b"1 2",
    b"NaN",
    b"1e999",
    b'"\xff"',
    b'"\\ud800"',
    b'"\\x"',
    b"[1,]",
    b"01",
    b'1}, "status": "forged"',
]


@pytest.mark.parametrize("text", NO_JSON)
@pytest.mark.parametrize(
    "wrap", [lambda raw: raw, lambda raw: {"x": raw, "y": 1}, Enveloped], ids=["bare", "inside", "field"]
)
def test_text_of_ones_own_that_is_no_json_is_not_written(text: bytes, wrap: Callable[[Raw], object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        written(wrap(Raw(text)))


def test_text_of_ones_own_is_written_as_it_is() -> None:
    text = b'{"y": [{"b" : 1.50, "a":"\xc3\xa4"}]}'

    assert b'{"x":' + text + b"}" == written({"x": Raw(text)})


@pytest.mark.parametrize("wrap", [lambda text: Raw(text.encode()), json.decode], ids=["text", "value"])
def test_what_is_written_nests_no_deeper_than_what_is_accepted(wrap: Callable[[str], object]) -> None:
    assert nested(MAX_DEPTH) == written(wrap(nested(MAX_DEPTH))).decode()
    with pytest.raises(JsonProblem, match="nested deeper than 64 levels"):
        written(wrap(nested(MAX_DEPTH + 1)))


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}], ids=ascii)
def test_what_would_be_no_json_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        written(value)


@pytest.mark.parametrize("value", [object(), {None: 1}, {(1, 2): 3}, {True: 1}, 1j])
def test_what_has_no_form_in_json_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        written(value)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ({"nan": None, "inf": 1, "a": '"nan":'}, dict, '{"nan":null,"inf":1,"a":"\\"nan\\":"}'),
        (b"ab", bytes, '"YWI="'),
        ({1}, set[int], "[1]"),
        ((1, "a"), tuple[int, str], '[1,"a"]'),
        ({1: "a"}, dict[int, str], '{"1":"a"}'),
        (Decimal("1.10"), Decimal, '"1.10"'),
        (timedelta(days=1), timedelta, '"P1D"'),
        (Measured(1.5), Measured, '{"length":1.5}'),
        (2**80, int, "1208925819614629174706176"),
    ],
    ids=repr,
)
def test_what_json_has_no_word_for_is_written_so_that_its_type_reads_it(value: object, kind: Any, text: str) -> None:
    assert text == written(value).decode()
    assert value == convert(json.decode(text), kind, str_keys=True)
