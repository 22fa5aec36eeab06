"""A key of another type is a finding, whichever it is: it ends no examination, and what depends on it is named."""

from datetime import timedelta
from typing import Any

import pytest

from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.names import FAMILIES
from dtq.adapters.system import UuidIds
from dtq.application.audit import AuditTrail
from dtq.application.doctor import Doctor
from dtq.application.reports import Report
from dtq.application.treatment import UNRECORDED, Treatment
from dtq.domain.facts import SEE_TYPES, Role
from dtq.domain.findings import Kind
from dtq.domain.retention import Retention
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from tests.adapters.redis.schema import Schema
from tests.contract.steps import bring_to, seconds, stored
from tests.factories import OPERATOR, QUEUE, WORKER, a_heartbeat, a_task

KEYS: dict[str, Any] = {
    "record": lambda keys, tasks: keys.task(tasks[TaskStatus.QUEUED].task_id),
    "record of another": lambda keys, _: keys.task(TaskId("f" * 32)),
    "record of a delayed task": lambda keys, tasks: keys.task(tasks[TaskStatus.PENDING].task_id),
    "result": lambda keys, tasks: keys.result(tasks[TaskStatus.SUCCEEDED].task_id),
    "idempotency record": lambda keys, _: keys.idempotency(QUEUE, "key-queued"),
    "heartbeat": lambda keys, _: keys.worker(WORKER),
    "lock": lambda keys, _: keys.lock,
    "cancel marks": lambda keys, _: keys.cancelled,
    "stream": lambda keys, _: keys.stream(QUEUE, 5),
    "stream of none": lambda keys, _: keys.stream(QUEUE, 9),
    "pause": lambda keys, _: keys.paused(QUEUE),
    "queues": lambda keys, _: keys.queues,
    "workers": lambda keys, _: keys.workers,
    "recent": lambda keys, _: keys.recent,
    "schedule": lambda keys, _: keys.schedule,
    "claims": lambda keys, _: keys.claimed,
    "dead letters": lambda keys, _: keys.dead_letters,
    "audit": lambda keys, _: keys.audit,
}
DEPENDENT = {
    "cancel marks": {"entries without a record"},
    "record of a delayed task": {"counts of scheduled tasks"},
    "stream": {"entries of default, priority 5"},
    "stream of none": {"entries of default, priority 9"},
    "queues": {"the list of queues", "counts of scheduled tasks"},
    "workers": {"tasks that are abandoned", "consumers of default"},
    "schedule": {"the schedule", "counts of scheduled tasks"},
    "claims": {"tasks on loan", "counts of scheduled tasks"},
    "dead letters": {"dead letters", "dead letters older than the oldest that is left"},
    "audit": {"dead letters that are missing"},
}


def doctor_of(schema: Schema) -> Doctor:
    backend: Any = schema.harness.backend
    trail = AuditTrail(backend.audit, clock=backend.clock, observers=())
    treatment = Treatment(backend, ids=UuidIds(), trail=trail, observers=(), retention=Retention())
    return Doctor(backend, treatment=treatment, visibility_timeout=timedelta(seconds=30))


async def populated(schema: Schema) -> dict[TaskStatus, Task]:
    """Have a task of every status, each with a key, and a worker that lives and has read."""
    tasks = {status: await bring_to(schema.harness, status, idempotency_key=f"key-{status}") for status in TaskStatus}
    await schema.harness.backend.workers.announce(a_heartbeat(), expires_in=seconds(60))
    assert (True, [], []) == told(await doctor_of(schema).examine())
    return tasks


async def spoil(schema: Schema, name: str) -> None:
    await schema.call("DEL", name)
    spoiled = ("RPUSH", name, "somebody else's") if is_text(schema, name) else ("SET", name, "somebody else's")
    await schema.call(*spoiled)
    await schema.call("EXPIRE", name, "600")


def is_text(schema: Schema, name: str) -> bool:
    keys = schema.keys
    return name in {keys.lock, keys.paused(QUEUE)} or name.startswith((f"{keys.prefix}:result", f"{keys.prefix}:idem"))


def told(report: Report) -> tuple[bool, list[Any], list[Any]]:
    return report.is_healthy, [(one.kind, one.count) for one in report.groups], [*report.suspicions]


async def damage(schema: Schema, which: str) -> str:
    tasks = await populated(schema)
    name: str = KEYS[which](schema.keys, tasks)
    await spoil(schema, name)
    return name


def test_every_family_of_keys_is_tried() -> None:
    keys = Keyspace("dtq")
    names = [make(keys, dict.fromkeys(TaskStatus, a_task())).removeprefix("dtq:") for make in KEYS.values()]

    untried = [pattern.pattern for pattern, role, _ in FAMILIES if not any(map(pattern.fullmatch, names))]
    assert [pattern.pattern for pattern, role, _ in FAMILIES if role is Role.HANDLERS] == untried


@pytest.mark.parametrize("which", KEYS)
async def test_it_is_found_with_what_depends_on_it(schema: Schema, which: str) -> None:
    name = await damage(schema, which)

    report = await doctor_of(schema).examine()

    assert (False, [(Kind.WRONG_TYPE, 1)], []) == told(report)
    assert [name] == [one.subject for one in report.groups[0].examples]
    assert dict.fromkeys(DEPENDENT.get(which, ()), SEE_TYPES) == {one.what: one.why for one in report.denied}


@pytest.mark.parametrize("which", KEYS)
async def test_a_repair_leaves_it_and_goes_on(schema: Schema, which: str) -> None:
    lost = await bring_to(schema.harness, TaskStatus.QUEUED, priority=2)
    name = await damage(schema, which)
    await schema.call("XDEL", schema.keys.stream(QUEUE, 2), lost.entry_id or "")

    report = await doctor_of(schema).repair(by=OPERATOR)

    groups = {one.kind: (one.repaired, one.left, [*one.reasons]) for one in report.groups}
    assert {Kind.WRONG_TYPE, Kind.HOMELESS} == groups.keys()
    assert (0, 1) == groups[Kind.WRONG_TYPE][:2]
    expected = (0, 1, [UNRECORDED]) if name == schema.keys.audit else (1, 0, [])
    assert expected == groups[Kind.HOMELESS]
    assert (lost.entry_id == (await stored(schema.harness, lost.task_id)).entry_id) == (name == schema.keys.audit)
