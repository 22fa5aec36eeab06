"""What is shown of a task is JSON, whatever stands in its record."""

import msgspec
import pytest

from dtq.application.tasks import TaskView
from dtq.entrypoints.views import full, listed
from dtq.ports.broker import Recent
from tests.factories import a_task

SPOILED = (
    "",
    "not json",
    "\ufffd",
    "[" * 100_000,
    '{"a": ' + "[" * 64 + "]" * 64 + "}",
    '{"a": NaN}',
    "{} {}",
    '{}, "status": "succeeded"',
)
NO_OBJECT = ("1", "[]", '"{}"', "null")


def shown(**fields: str) -> dict[str, object]:
    task = a_task(payload=fields.get("payload", "{}"), metadata=fields.get("metadata", "{}"), discarded=False)
    view = TaskView(task=task, result=fields.get("result"), result_expired=False)
    body: dict[str, object] = msgspec.json.decode(msgspec.json.encode(full(view)))
    return body


@pytest.mark.parametrize("text", [*SPOILED, *NO_OBJECT], ids=lambda text: text[:12])
def test_metadata_that_is_no_object_is_left_out_and_named(text: str) -> None:
    body = msgspec.json.decode(msgspec.json.encode(listed(Recent([a_task(metadata=text), a_task(metadata='{"a":1}')]))))

    assert [{"unreadable": ["metadata"]}, {"a": 1}] == [task["metadata"] for task in body["tasks"]]
    assert {"unreadable": ["metadata"]} == shown(metadata=text)["metadata"]


@pytest.mark.parametrize("text", [*SPOILED, *NO_OBJECT], ids=lambda text: text[:12])
def test_a_payload_that_is_no_object_is_left_out_and_named(text: str) -> None:
    body = shown(payload=text, metadata='{"mine": 1}')

    assert "payload" not in body
    assert {"mine": 1, "unreadable": ["payload"]} == body["metadata"]


@pytest.mark.parametrize("text", SPOILED, ids=lambda text: text[:12])
def test_a_result_that_is_no_json_is_null_and_named(text: str) -> None:
    body = shown(result=text)

    assert (None, False) == (body["result"], body["result_expired"])
    assert {"unreadable": ["result"]} == body["metadata"]


def test_all_three_may_be_spoiled_at_once() -> None:
    body = shown(result="?", payload="?", metadata="?")

    assert {"unreadable": ["payload", "result", "metadata"]} == body["metadata"]


@pytest.mark.parametrize("text", ["1", "null", "[]", '{"n":123456789012345678901234567890}', '"x"'])
def test_a_result_is_shown_as_it_was_kept(text: str) -> None:
    task = a_task()

    encoded = msgspec.json.encode(full(TaskView(task=task, result=text, result_expired=False)))

    assert f'"result":{text},'.encode() in encoded
    assert b'"metadata":{}' in encoded
