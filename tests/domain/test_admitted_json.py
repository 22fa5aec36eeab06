"""The two fields of a submission that are JSON text: payload and metadata."""

from datetime import timedelta

import pytest

from dtq.domain.admission import AdmissionRules, TaskSpec, admit
from dtq.domain.errors import FieldProblem, InvalidTask, PayloadTooLarge
from tests.domain.factories import RULES

HUNDRED_YEARS = 3_153_600_000


def admitted(*, payload: object = "{}", metadata: object = None, rules: AdmissionRules = RULES) -> TaskSpec:
    return admit({"task_type": "echo_task", "payload": payload, "metadata": metadata}, rules=rules)


def problems(*, payload: object = "{}", metadata: object = None) -> tuple[FieldProblem, ...]:
    with pytest.raises(InvalidTask) as refusal:
        admitted(payload=payload, metadata=metadata)
    return refusal.value.problems


def an_object_of(size: int, *, filling: str = "x") -> str:
    """An object whose text has *size* bytes."""
    count, rest = divmod(size - len('{"a":""}'), len(filling.encode()))
    return '{"a":"' + filling * count + "x" * rest + '"}'


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        ' { "a" : [ ] }\n',
        '{"a":12345678901234567890123,"b":1.0,"c":-0,"d":1E2,"e":0.10}',
        '{"a":1,"a":2}',
        '{"a":"\\u00e4\\/\\ud83d\\ude00"}',
        '{"ä":"😀"}',
    ],
)
def test_an_object_is_kept_byte_by_byte(text: str) -> None:
    assert (text, text) == (admitted(payload=text).payload, admitted(metadata=text).metadata)


@pytest.mark.parametrize("field", ["payload", "metadata"])
@pytest.mark.parametrize("value", [{}, {"a": 1}, [], 1, True, b"{}"])
def test_a_value_that_is_no_text_is_refused(field: str, value: object) -> None:
    assert (FieldProblem(field, "must be a JSON object"),) == problems(**{field: value})


@pytest.mark.parametrize("field", ["payload", "metadata"])
@pytest.mark.parametrize("text", ["", "null", "[]", '"x"', "1"])
def test_text_that_is_no_object_is_refused(field: str, text: str) -> None:
    (problem,) = problems(**{field: text})

    assert field == problem.field


@pytest.mark.parametrize("field", ["payload", "metadata"])
@pytest.mark.parametrize(
    "member", ["NaN", "Infinity", "1e400", '"\ud800"', '"\\ud800"', "[" * 64 + "]" * 64, "01", "1}"]
)
def test_json_that_is_not_strict_is_refused(field: str, member: str) -> None:
    (problem,) = problems(**{field: f'{{"a":{member}}}'})

    assert field == problem.field


@pytest.mark.parametrize("filling", ["x", "ä", "😀"])
def test_a_payload_may_be_as_large_as_its_limit_in_bytes(filling: str) -> None:
    text = an_object_of(262_144, filling=filling)

    assert text == admitted(payload=text).payload


@pytest.mark.parametrize("filling", ["x", "ä", "😀"])
def test_a_payload_one_byte_above_its_limit_is_too_large(filling: str) -> None:
    with pytest.raises(PayloadTooLarge, match="payload: 262145 bytes, at most 262144 are allowed"):
        admitted(payload=an_object_of(262_145, filling=filling))


def test_the_payloads_limit_is_the_operators() -> None:
    rules = AdmissionRules(task_types={"echo_task"}, max_payload_bytes=10)

    assert an_object_of(10) == admitted(payload=an_object_of(10), rules=rules).payload
    with pytest.raises(PayloadTooLarge, match="payload: 11 bytes, at most 10 are allowed"):
        admitted(payload=an_object_of(11), rules=rules)


def test_the_size_counts_the_text_as_it_came() -> None:
    with pytest.raises(PayloadTooLarge):
        admitted(payload="{" + " " * 262_143 + "}")


@pytest.mark.parametrize("filling", ["x", "ä"])
def test_metadata_may_be_as_large_as_its_limit_in_bytes(filling: str) -> None:
    text = an_object_of(4096, filling=filling)

    assert text == admitted(metadata=text).metadata


@pytest.mark.parametrize("filling", ["x", "ä"])
def test_metadata_one_byte_above_its_limit_is_refused(filling: str) -> None:
    expected = FieldProblem("metadata", "4097 bytes, at most 4096 are allowed")

    assert (expected,) == problems(metadata=an_object_of(4097, filling=filling))


def test_metadata_above_its_limit_is_not_looked_into() -> None:
    (problem,) = problems(metadata="\ud800" * 4096)

    assert FieldProblem("metadata", "12288 bytes, at most 4096 are allowed") == problem


@pytest.mark.parametrize("name", ["previous_attempts", "previous_attempts_dropped", "discarded"])
@pytest.mark.parametrize("value", ["null", "[]", "1"])
def test_a_name_that_dtq_writes_is_reserved(name: str, value: str) -> None:
    expected = FieldProblem(f"metadata.{name}", "reserved: dtq writes it")

    assert (expected,) == problems(metadata=f'{{"{name}":{value}}}')


def test_a_reserved_name_may_stand_deeper() -> None:
    text = '{"mine":{"discarded":1}}'

    assert text == admitted(metadata=text).metadata


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1", 1000),
        ("0.5", 500),
        ("1e-9", 1),
        ("1.1", 1100),
        ("1E2", 100_000),
        (str(HUNDRED_YEARS), HUNDRED_YEARS * 1000),
    ],
)
def test_a_time_to_live_is_read_from_metadata(text: str, milliseconds: int) -> None:
    assert timedelta(milliseconds=milliseconds) == admitted(metadata=f'{{"ttl_seconds":{text}}}').ttl


@pytest.mark.parametrize(
    "text",
    ["0", "-0", "-0.0", "-1", "true", "false", "null", '"60"', "[]", "{}", str(HUNDRED_YEARS + 1), "9" * 300, "1e300"],
)
def test_a_time_to_live_is_a_finite_number_above_zero(text: str) -> None:
    expected = FieldProblem("metadata.ttl_seconds", "must be a finite number above 0, at most 3153600000")

    assert (expected,) == problems(metadata=f'{{"ttl_seconds":{text}}}')


def test_of_two_times_to_live_the_last_counts() -> None:
    assert timedelta(seconds=2) == admitted(metadata='{"ttl_seconds":1,"ttl_seconds":2}').ttl
