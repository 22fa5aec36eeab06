"""Check 9: a text is refused, or comes back character by character; what cannot be shown is replaced, and never a 500.

What is malformed is in tests/judged/bad_bodies.py, what becomes of a reply that is no UTF-8 in tests/adapters/redis.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.security.site import ENTRY, Site

LOSSLESS = {
    "NUL": "\x00",
    "byte order mark": "\ufeff",
    "separators": "\u2028\u2029\x85",
    "right to left": "\u202e\u2066",
    "beyond the plane": "\U0001f4a5\U0010ffff",
    "no characters": "\ufffe\uffff\ufdd0",
    "combining": "e\u0301" * 50,
    "escapes": "\x1b[31m\x07\x08\x7f\r\n\t",
    "quotes": "\"'\\/<!--</script>",
    "empty": "",
}
SURROGATES = ('"\\ud800"', '"\\udfff"', '"\\udc00\\ud800"', '"a\\ud83dx"', '"\\uD800\\u0041"')
NO_UTF8 = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80")


@pytest.mark.parametrize("name", LOSSLESS)
def test_a_text_comes_back_as_it_was(site: Site, name: str) -> None:
    text = LOSSLESS[name]
    value = {"a": text, text or "b": [text]}

    task = site.run("echo", json.dumps(value, ensure_ascii=False), metadata=value)

    assert value == task["payload"] == task["result"] == task["metadata"]
    listed = site.api.http.get("/api/v1/tasks", params={"limit": 1}).json()["tasks"]
    assert [value] == [one["metadata"] for one in listed]


def test_a_name_of_a_hundred_kilobytes_comes_back(site: Site) -> None:
    value = {"k" * 100_000: 1}

    task = site.run("echo", json.dumps(value))

    assert value == task["payload"]
    assert (None, True) == (task["result"], task["result_truncated"])


@pytest.mark.parametrize("text", SURROGATES)
@pytest.mark.parametrize("form", ['{{"a": {}}}', "{{{}: 1}}"], ids=["value", "name"])
@pytest.mark.parametrize("member", ["payload", "metadata"])
def test_half_a_pair_is_refused(site: Site, text: str, form: str, member: str) -> None:
    members = {"task_type": '"echo"', "payload": "{}", member: form.format(text)}
    body = ", ".join(f'"{name}": {value}' for name, value in members.items())

    answer = site.post("{" + body + "}")

    assert (400, ["body"]) == (answer.status_code, [fault["field"] for fault in answer.json()["errors"]])
    assert "lone surrogate" in answer.text


@pytest.mark.parametrize("text", NO_UTF8)
def test_what_is_no_utf8_is_refused(site: Site, text: bytes) -> None:
    answer = site.post(b'{"task_type": "echo", "payload": {"a": "' + text + b'"}}')

    assert (400, "INVALID_TASK") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("text", [*NO_UTF8, b"\x00", b"\r\n", b"\x1b[31m", "\u2028".encode()])
@pytest.mark.parametrize("field", ["payload", "task_type", "idempotency_key", "task_id", "queue", "attempt"])
def test_slipped_in_it_ends_up_among_the_dead_letters_which_stay_readable(site: Site, field: str, text: bytes) -> None:
    site.slip_in({**ENTRY, field: text})
    site.see_entries_gone()

    answer = site.api.http.get("/api/v1/dlq", params={"limit": 500})

    letters = answer.json()["dead_letters"]
    assert 0 < len(letters)
    for letter in letters:
        assert not set("\r\n\x00\x1b\u2028") & set(f"{letter['task_id']}{letter['task_type']}{letter['last_error']}")


def test_the_command_line_refuses_bytes_that_are_no_text(site: Site) -> None:
    cases = {
        "payload": ("submit", "--type", "echo", "--payload", '{"a": "\udcff"}'),
        "task_type": ("submit", "--type", "\udcff", "--payload", "{}"),
        "idempotency_key": ("submit", "--type", "echo", "--payload", "{}", "--idempotency-key", "\udcff"),
    }
    with ThreadPoolExecutor(2) as pool:
        done = dict(zip(cases, pool.map(lambda words: site.system.command(*words), cases.values()), strict=True))

    for field, one in done.items():
        assert (5, "") == (one.returncode, one.stdout)
        assert one.stderr.splitlines()[-1].startswith(f"dtq: {field}: ")


def test_an_error_text_is_shown_without_what_could_break_a_line(site: Site) -> None:
    task = site.run("raise", '{"error": "forged"}', max_attempts=1)

    message = task["error_message"]
    letter = site.api.http.get(f"/api/v1/dlq/{task['task_id']}").json()

    assert "a  b  [31m  " == message == letter["last_error"] == task["history"][0]["error_message"]
