"""What the tests of reports share: submitting as a client does, taking commands away, and counting starts."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.judged import handlers as judged_handlers
from tests.judged.sizes import FULL, QUICK
from tests.judged.system import Api, System
from tests.judged.waiting import wait_until
from tests.reports import handlers

MODULES = {**QUICK, "DTQ_TASK_MODULES": f"{judged_handlers.__name__},{handlers.__name__}"}
"""Settings of a deployment that also has the handlers of this folder."""

WITHIN_S = 60.0
PASSWORD = "reports"


def sized(small: int, full: int) -> int:
    """How many of something: as many as the report has in the full size, a few otherwise."""
    return full if FULL else small


def submission(task_type: str, payload: Mapping[str, Any] | None = None, **fields: object) -> dict[str, object]:
    """The body of a request that submits a task."""
    return {"task_type": task_type, "payload": dict(payload or {}), **fields}


def submitted(api: Api, task_type: str, payload: Mapping[str, Any] | None = None, **fields: object) -> str:
    """Submit a task as a client does, and return its id."""
    answer = api.http.post("/api/v1/tasks", json=submission(task_type, payload, **fields))
    assert httpx.codes.ACCEPTED == answer.status_code, answer.text
    task_id: str = answer.json()["task_id"]
    return task_id


def starts_of(system: System, task_ids: Iterable[str]) -> dict[str, list[int]]:
    """The numbers of the attempts that were begun, of each task."""
    found: dict[str, list[int]] = {task_id: [] for task_id in task_ids}
    for mark in system.journal.marks(lambda mark: mark.what == "start" and mark.task_id in found):
        found[mark.task_id].append(mark.attempt)
    return found


def see_each_run_once(system: System, task_ids: Iterable[str], *, within: float = WITHIN_S) -> None:
    """See that each task succeeds at its first start, and is never started again."""
    ids = list(task_ids)
    wait_until(lambda: system.count_ended(ids) == len(ids), within=within, what=f"all {len(ids)} tasks end")
    assert {TaskStatus.SUCCEEDED: len(ids)} == count_statuses(system, ids)
    assert {} == {task_id: found for task_id, found in starts_of(system, ids).items() if found != [1]}


def count_statuses(system: System, task_ids: Iterable[str]) -> dict[str, int]:
    """How many of these tasks have each status."""
    pipeline = system.redis.pipeline(transaction=False)
    for task_id in task_ids:
        pipeline.hget(system.keys.task(TaskId(task_id)), "status")
    found: list[str] = pipeline.execute()
    return {status: found.count(status) for status in set(found)}


class User:
    """A user of a server who may do everything, until a command is taken away from it."""

    def __init__(self, system: System, name: str) -> None:
        self._redis = system.redis
        self.name = name
        parts = urlsplit(system.server.url)
        place = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit(parts._replace(netloc=f"{name}:{PASSWORD}@{place}"))
        self._set("on", f">{PASSWORD}", "~*", "&*", "+@all")

    def deny(self, *commands: str) -> None:
        """Take commands away, from open connections too."""
        self._set(*(f"-{command}" for command in commands))

    def allow(self, *commands: str) -> None:
        """Give commands back."""
        self._set(*(f"+{command}" for command in commands))

    def _set(self, *rules: str) -> None:
        self._redis.execute_command("ACL", "SETUSER", self.name, *rules)
