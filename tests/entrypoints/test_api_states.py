"""What each endpoint answers to a task in each state, with and without the key, on every adapter."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import httpx
import pytest

from dtq.domain import lifecycle
from dtq.domain.audit import AuditEntry
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.contract.conftest import harness, open_harness
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, make, now
from tests.entrypoints.serving import KEY, WITH_KEY, serving
from tests.factories import OPERATOR, a_token, an_audit_entry

__all__ = ["harness", "open_harness"]

S = TaskStatus
Expected = tuple[int, str | None]
State = Callable[[Harness], Awaitable[str]]

UNKNOWN: Final = "0" * 32
NO_ID: Final = "no-id"


def _in(status: TaskStatus) -> State:
    async def state(harness: Harness) -> str:
        return (await bring_to(harness, status)).task_id

    return state


async def _cancel_requested(harness: Harness) -> str:
    task = await bring_to(harness, S.RUNNING)
    await make(harness, lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR))
    return task.task_id


async def _discarded(harness: Harness) -> str:
    task = await bring_to(harness, S.DEAD_LETTERED)
    await make(harness, lifecycle.discard(task, now=now(harness), token=a_token(), by=OPERATOR))
    return task.task_id


async def _purged(harness: Harness) -> str:
    task = await bring_to(harness, S.DEAD_LETTERED)
    await harness.backend.dead_letters.purge(audit=an_audit_entry())
    return task.task_id


async def _evicted(harness: Harness) -> str:
    task = await bring_to(harness, S.DEAD_LETTERED)
    await harness.evict(task.task_id)
    return task.task_id


async def _unknown(_: Harness) -> str:
    return UNKNOWN


async def _no_id(_: Harness) -> str:
    return NO_ID


STATES: Final[Mapping[str, State]] = {
    **{status.value: _in(status) for status in S},
    "cancel requested": _cancel_requested,
    "discarded": _discarded,
    "purged": _purged,
    "record evicted": _evicted,
    "unknown": _unknown,
    "no id": _no_id,
}

NOT_FOUND: Final[Expected] = (404, "TASK_NOT_FOUND")
NOT_IN_DLQ: Final[Expected] = (404, "NOT_IN_DLQ")
NOT_DEAD: Final[Expected] = (409, "NOT_DEAD_LETTERED")
ENDED: Final[Expected] = (410, "TASK_TERMINAL")
REQUESTED: Final[Expected] = (409, "CANCEL_REQUESTED")
DISCARDED: Final[Expected] = (410, "DLQ_DISCARDED")


def _done(status: int) -> Expected:
    return (status, None)


def _of_a_dead_letter(done: int) -> Mapping[str, Expected]:
    alive_or_otherwise_ended = {status.value: NOT_DEAD for status in S}
    return alive_or_otherwise_ended | {
        "cancel requested": NOT_DEAD,
        "dead_lettered": _done(done),
        "discarded": DISCARDED,
        "purged": NOT_IN_DLQ,
        "record evicted": _done(done),
        "unknown": NOT_FOUND,
        "no id": NOT_FOUND,
    }


TABLE: Final[Mapping[str, Mapping[str, Expected]]] = {
    "GET /api/v1/tasks/{id}": dict.fromkeys(STATES, _done(200))
    | dict.fromkeys(["record evicted", "unknown", "no id"], NOT_FOUND),
    "POST /api/v1/tasks/{id}/cancel": dict.fromkeys(STATES, ENDED)
    | {"pending": _done(202), "queued": _done(202), "retrying": _done(202)}
    | dict.fromkeys(["running", "cancel requested"], REQUESTED)
    | dict.fromkeys(["record evicted", "unknown", "no id"], NOT_FOUND),
    "GET /api/v1/dlq/{id}": dict.fromkeys(STATES, NOT_IN_DLQ)
    | dict.fromkeys(["dead_lettered", "record evicted"], _done(200))
    | {"no id": NOT_FOUND},
    "POST /api/v1/dlq/{id}/requeue": _of_a_dead_letter(202),
    "POST /api/v1/dlq/{id}/discard": _of_a_dead_letter(200),
}

ACTIONS: Final = {
    "POST /api/v1/tasks/{id}/cancel": "task.cancel",
    "POST /api/v1/dlq/{id}/requeue": "dlq.requeue",
    "POST /api/v1/dlq/{id}/discard": "dlq.discard",
}
BECOMES: Final = {
    "POST /api/v1/tasks/{id}/cancel": S.CANCELLED,
    "POST /api/v1/dlq/{id}/requeue": S.QUEUED,
    "POST /api/v1/dlq/{id}/discard": S.DEAD_LETTERED,
}

CELLS: Final = [(endpoint, state) for endpoint, row in TABLE.items() for state in row]


def test_the_table_is_whole() -> None:
    assert all(set(STATES) == set(row) for row in TABLE.values())


async def ask(client: httpx.AsyncClient, endpoint: str, task_id: str, **headers: str) -> httpx.Response:
    method, path = endpoint.split()
    return await client.request(method, path.format(id=task_id), headers=headers)


def seen(answer: httpx.Response) -> Expected:
    return answer.status_code, answer.json().get("code")


async def audit(harness: Harness) -> list[AuditEntry]:
    return list(await harness.backend.audit.recent(limit=50))


@pytest.mark.parametrize(("endpoint", "state"), CELLS, ids=lambda value: value.replace(" ", "-"))
async def test_an_open_api_answers_by_the_table(harness: Harness, endpoint: str, state: str) -> None:
    task_id = await STATES[state](harness)
    before = await audit(harness)

    async with serving(harness.backend) as client:
        answer = await ask(client, endpoint, task_id, **{"X-Request-ID": "req-7"})

    expected = TABLE[endpoint][state]
    assert expected == seen(answer), answer.text
    assert "req-7" == answer.headers["x-request-id"]
    await see_what_became(harness, endpoint, task_id, expected=expected, answer=answer)
    see_audited(await audit(harness), before, endpoint, task_id, code=expected[1], actor="anonymous@192.0.2.7")


@pytest.mark.parametrize(("endpoint", "state"), CELLS, ids=lambda value: value.replace(" ", "-"))
async def test_a_guarded_api_answers_by_the_table_to_who_has_the_key(
    harness: Harness, endpoint: str, state: str
) -> None:
    task_id = await STATES[state](harness)
    stored, before = await harness.backend.broker.load(TaskId(task_id)), await audit(harness)

    async with serving(harness.backend, api_key=KEY) as client:
        without = [await ask(client, endpoint, task_id, **headers) for headers in ({}, {"X-API-Key": f"{KEY}x"})]
        untouched = (await harness.backend.broker.load(TaskId(task_id)), await audit(harness))
        answer = await ask(client, endpoint, task_id, **WITH_KEY, **{"X-Request-ID": "req-7"})

    expected = TABLE[endpoint][state]
    refused = (401, "UNAUTHORIZED") if endpoint in ACTIONS else expected
    assert [refused] * 2 == [seen(one) for one in without]
    assert (stored, before) == untouched
    assert expected == seen(answer), answer.text
    see_audited(await audit(harness), before, endpoint, task_id, code=expected[1], actor="api-key:")


async def see_what_became(
    harness: Harness, endpoint: str, task_id: str, *, expected: Expected, answer: httpx.Response
) -> None:
    """See that the answer names the task and its new status, and that it is so."""
    status, code = expected
    body: dict[str, Any] = answer.json()
    if code is not None:
        assert (status, "application/problem+json") == (body["status"], answer.headers["content-type"])
        return
    assert task_id == body["task_id"]
    if endpoint in BECOMES:
        task = await harness.backend.broker.load(TaskId(task_id))
        assert task is not None
        assert BECOMES[endpoint] is task.status
        assert body["status"] == task.status


def see_audited(
    after: list[AuditEntry], before: list[AuditEntry], endpoint: str, task_id: str, *, code: str | None, actor: str
) -> None:
    """See that a destructive act left one entry, done or refused, and that nothing else left any."""
    found = after[: len(after) - len(before)]
    if endpoint not in ACTIONS:
        assert [] == found
        return
    [entry] = found
    is_request = code == "CANCEL_REQUESTED" and entry.outcome == "done"
    assert f"{ACTIONS[endpoint]}{'_requested' if is_request else ''}" == entry.action
    assert ("done" if is_request else code or "done") == entry.outcome
    assert (task_id, "req-7") == (entry.task_id, entry.request_id)
    assert entry.actor.startswith(actor)
