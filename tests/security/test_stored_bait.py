"""Check 1: what stands in Redis is data. Nothing of it is imported, called or unpacked, whoever wrote it there."""

import json
from pathlib import Path

import pytest

from tests.security.site import ENTRY, Site

TOUCH = "touch {}"
PICKLE = "cos\nsystem\n(S'" + TOUCH + "'\ntR."
BINARY_PICKLE = b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c"
YAML = "!!python/object/apply:os.system ['" + TOUCH + "']"
TYPES = (
    "os.system",
    "os:system",
    "posix.system",
    "subprocess.run",
    "bait",
    "bait.run",
    "bait:run",
    "dtq.demo:echo",
    "dtq.demo.echo",
    "tests.security.handlers.echo",
    "builtins.exec",
)
NO_TYPES = (
    "__import__",
    "__class__",
    "../bait",
    "bait run",
    "bait\n",
    "",
    "\u0435cho",
)


@pytest.fixture(scope="module")
def canary(site: Site) -> Path:
    """A file that is there once anything was executed: the module beside the worker writes it when it is imported."""
    path = site.system.folder / "canary"
    text = f"open({str(path)!r}, 'w').close()\ndef run(*arguments): pass\n"
    (site.system.folder / "bait.py").write_text(text)
    return path


def entry_of(text: str | bytes, canary: Path) -> dict[str, object]:
    return {**ENTRY, "payload": text.replace("{}", str(canary)) if isinstance(text, str) else text}


@pytest.mark.parametrize("payload", [PICKLE, YAML, BINARY_PICKLE], ids=["pickle", "yaml", "binary"])
def test_code_in_a_payload_ends_its_task_and_does_not_run(site: Site, canary: Path, payload: str | bytes) -> None:
    task_id = site.slip_in(entry_of(payload, canary))

    task = site.ended(task_id)

    assert task.failure is not None
    assert ("dead_lettered", "PayloadNotDecodable", 1) == (task.status, task.failure.error_class, task.attempt)
    assert not canary.exists()
    site.see_work_goes_on()


@pytest.mark.parametrize("task_type", TYPES)
def test_a_task_type_names_a_handler_and_never_a_module(site: Site, canary: Path, task_type: str) -> None:
    task_id = site.slip_in({**ENTRY, "task_type": task_type})

    task = site.ended(task_id)

    assert task.failure is not None
    assert ("UnknownTaskType", f"unknown_task_type:{task_type}") == (
        task.failure.error_class,
        task.failure.error_message,
    )
    assert not canary.exists()


@pytest.mark.parametrize("task_type", NO_TYPES)
def test_an_entry_whose_type_is_no_name_is_buried_as_malformed(site: Site, canary: Path, task_type: str) -> None:
    task_id = site.slip_in({**ENTRY, "task_type": task_type})
    site.see_entries_gone()

    [letter] = [letter for letter in site.letters() if letter[b"task_id"] == task_id.encode()]

    assert b"malformed_entry" == letter[b"last_error_class"]
    assert not canary.exists()


def test_what_a_record_says_about_its_handler_is_a_name_too(site: Site, canary: Path) -> None:
    task_id = site.submitted("echo", delay_seconds=0.3)
    site.spoil(task_id, task_type="bait:run", worker_id=PICKLE)

    task = site.shown(task_id)

    assert "UnknownTaskType" == task["error_class"]
    assert not canary.exists()


def test_no_module_that_a_stranger_named_was_imported(site: Site) -> None:
    # last of these tests: the worker has met every name by now
    for task_type in TYPES:
        site.slip_in({**ENTRY, "task_type": task_type})
    site.see_entries_gone()

    assert ["json"] == site.run("loaded", json.dumps({"names": ["bait", "pickle_bait", "json"]}))["result"]


def test_a_submission_cannot_name_a_module_either(site: Site, canary: Path) -> None:
    for task_type in TYPES:
        answer = site.post(json.dumps({"task_type": task_type, "payload": {}}))
        assert (400, "UNKNOWN_TASK_TYPE") == (answer.status_code, answer.json()["code"])

    assert not canary.exists()


def test_lists_of_what_was_slipped_in_stay_readable(site: Site, canary: Path) -> None:
    site.ended(site.slip_in(entry_of(PICKLE, canary)))

    answer = site.api.http.get("/api/v1/dlq", params={"limit": 500})
    done = site.system.command("dlq", "list", "--limit", "500", "--json")

    assert len(answer.json()["dead_letters"]) == len(json.loads(done.stdout)["dead_letters"])
    assert not canary.exists()
