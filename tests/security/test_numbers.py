"""Check 8: a number is refused, or comes back digit by digit, through API, worker and command line.

Bounds of each field are in tests/domain/test_admission.py, numbers that no field takes in tests/judged/bad_bodies.py.
"""

import json
import math
import re

import pytest

from tests.security.site import ENTRY, Site

EXACT = {
    "two to the 53rd and one": "9007199254740993",
    "two to the 64th": "18446744073709551616",
    "below all": "-9223372036854775809",
    "4300 digits": "7" * 4300,
    "a tenth": "0.1",
    "the largest": "1.7976931348623157e308",
    "the smallest": "5e-324",
    "below zero": "-0.0",
    "zero below": "-0",
    "capital": "1E5",
    "with a fraction": "1.0",
    "more digits than a float": "123456789012345678901234567890.5",
    "many digits": "0." + "1" * 5000,
    "too small": "1e-400",
}
"""Texts that are kept as they are; a handler is given what Python makes of them."""

REFUSED = {
    "NaN": "NaN",
    "Infinity": "Infinity",
    "below": "-Infinity",
    "overflow": "1e400",
    "overflow below": "-1e400",
    "too many digits": "7" * 4301,
    "hexadecimal": "0x10",
    "leading zero": "01",
    "plus": "+1",
    "no digit": ".5",
    "open": "1.",
    "underscore": "1_000",
    "Arabic": "\u0663",
}


def text_of(answer: str, member: str) -> str:
    """The text of the member `a` of an object, as it stands in an answer."""
    found = re.search(rf'"{member}": ?\{{\s*"a": ?([^}}\s]+)\s*\}}', answer)
    assert found is not None, answer
    return found[1]


@pytest.mark.parametrize("name", EXACT)
def test_a_number_keeps_every_digit_in_payload_and_metadata(site: Site, name: str) -> None:
    text = EXACT[name]
    metadata = f'{{"a": {text}}}' if len(text) < 4000 else '{"a": 1}'
    answer = site.post(f'{{"task_type": "echo", "payload": {{"a": {text}}}, "metadata": {metadata}}}')
    task_id = answer.json()["task_id"]
    site.ended(task_id)

    shown = site.api.http.get(f"/api/v1/tasks/{task_id}").text
    listed = site.api.http.get("/api/v1/tasks", params={"limit": 1}).text

    assert text == text_of(shown, "payload")
    assert metadata[6:-1] == text_of(shown, "metadata") == text_of(listed, "metadata")
    assert json.loads(text) == json.loads(text_of(shown, "result"))


def test_the_command_line_keeps_the_digits_too(site: Site) -> None:
    text = "18446744073709551616"

    done = site.system.command("submit", "--type", "echo", "--payload", f'{{"a": {text}}}', "--wait", "--json")

    assert [text, text] == [text_of(done.stdout, member) for member in ("payload", "result")]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_finite_number_is_refused(site: Site, name: str) -> None:
    answer = site.post(f'{{"task_type": "echo", "payload": {{"a": {REFUSED[name]}}}}}'.encode())

    assert (400, "INVALID_TASK") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("name", REFUSED)
def test_slipped_in_it_ends_its_task_and_spoils_no_list(site: Site, name: str) -> None:
    task_id = site.slip_in({**ENTRY, "payload": f'{{"a": {REFUSED[name]}}}'})

    task = site.ended(task_id)

    assert task.failure is not None
    assert ("dead_lettered", "PayloadNotDecodable") == (task.status, task.failure.error_class)
    for path in ("/api/v1/tasks", "/api/v1/dlq"):
        assert [] == not_numbers(site.api.http.get(path).text)


def not_numbers(answer: str) -> list[str]:
    """What stands in a text for a number and is none."""
    found: list[str] = []
    json.loads(answer, parse_constant=found.append, parse_float=lambda text: note(text, found))
    return found


def note(text: str, found: list[str]) -> float:
    number = float(text)
    if not math.isfinite(number):
        found.append(text)
    return number


@pytest.mark.parametrize(
    ("member", "text"),
    [
        ("priority", "true"),
        ("priority", '"5"'),
        ("priority", "5.5"),
        ("priority", "[5]"),
        ("priority", "18446744073709551621"),
        ("max_attempts", "-1"),
        ("max_attempts", "1e1"),
        ("timeout_ms", "1e12"),
        ("delay_seconds", "-1"),
        ("delay_seconds", "1e12"),
        ("delay_seconds", '"1"'),
        ("delay_seconds", "9" * 4000),
    ],
)
def test_no_field_takes_what_only_looks_like_its_number(site: Site, member: str, text: str) -> None:
    answer = site.post(f'{{"task_type": "echo", "payload": {{}}, "{member}": {text}}}')

    if text == "1e1":
        # an integer to JSON, which has one kind of number, and within the bounds
        assert 202 == answer.status_code
        return
    assert (400, [member]) == (answer.status_code, [fault["field"] for fault in answer.json()["errors"]])
