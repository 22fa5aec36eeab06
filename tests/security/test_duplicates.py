"""Check 10: of duplicate members the last one counts, everywhere; a header that decides something is given once.

X-API-Key twice: tests/entrypoints/test_http_auth.py. A query twice: tests/judged/test_bad_input.py.
"""

import json

import pytest

from tests.security.site import ENTRY, JSON, Site

TWICE = '{"a": 1, "b": {"c": 1, "c": 2}, "a": [2]}'
LAST = {"a": [2], "b": {"c": 2}}


def test_the_last_of_duplicate_members_is_what_a_handler_is_given(site: Site) -> None:
    slipped_in = site.slip_in({**ENTRY, "payload": TWICE})
    done = site.system.command("submit", "--type", "echo", "--payload", TWICE, "--wait", "--json")

    assert LAST == site.run("echo", TWICE)["result"]
    assert LAST == site.shown(slipped_in)["result"]
    assert LAST == json.loads(done.stdout)["result"]


@pytest.mark.parametrize(
    ("member", "texts", "expected"),
    [
        ("task_type", ('"nobody"', '"echo"'), "echo"),
        ("priority", ("1", "7"), 7),
        ("priority", ('"bad"', "7"), 7),
        ("idempotency_key", ('"first"', '"second-{}"'), "second-{}"),
        ("queue", ('"UPPER"', '"default"'), "default"),
        ("metadata", ('{"a": 1}', '{"b": 2}'), {"b": 2}),
    ],
)
@pytest.mark.parametrize("way", ["alone", "batch"])
def test_the_last_of_duplicate_fields_counts_alone_and_in_a_batch(
    site: Site, member: str, texts: tuple[str, str], expected: object, way: str
) -> None:
    first, second = (text.replace("{}", way) for text in texts)
    expected = expected.replace("{}", way) if isinstance(expected, str) else expected
    base = '"task_type": "echo", "payload": {}'
    item = f'{{{base}, "{member}": {first}, "{member}": {second}}}'

    if way == "alone":
        task_id = site.post(item).json()["task_id"]
    else:
        answer = site.api.http.post("/api/v1/tasks/batch", content=f'{{"tasks": [{item}]}}', headers=JSON)
        task_id = answer.json()["results"][0]["task_id"]

    assert expected == site.shown(task_id)[member]


def test_a_bad_value_that_comes_last_is_refused_whatever_came_before(site: Site) -> None:
    answer = site.post('{"task_type": "echo", "payload": {}, "priority": 5, "priority": 10}')

    assert (400, ["priority"]) == (answer.status_code, [fault["field"] for fault in answer.json()["errors"]])


def test_reserved_metadata_cannot_hide_behind_a_duplicate(site: Site) -> None:
    for text in ('{"discarded": true, "a": 1}', '{"discarded": true, "discarded": false}'):
        answer = site.post(f'{{"task_type": "echo", "payload": {{}}, "metadata": {text}}}')

        assert ["metadata.discarded"] == [fault["field"] for fault in answer.json()["errors"]]


def test_header_and_body_with_two_keys_are_one_rule(site: Site) -> None:
    body = '{"task_type": "echo", "payload": {}, "idempotency_key": "of-the-body"}'

    task_id = site.post(body, headers={"Idempotency-Key": "of-the-header"}).json()["task_id"]

    assert "of-the-header" == site.shown(task_id)["idempotency_key"]


def test_a_batch_refuses_a_key_in_a_header(site: Site) -> None:
    answer = site.api.http.post(
        "/api/v1/tasks/batch",
        content='{"tasks": [{"task_type": "echo", "payload": {}}]}',
        headers={**JSON, "Idempotency-Key": "k"},
    )

    assert (400, ["Idempotency-Key"]) == (answer.status_code, [fault["field"] for fault in answer.json()["errors"]])
