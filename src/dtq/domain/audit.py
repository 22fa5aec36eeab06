"""Who did what to the system, kept in the same step as the deed."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from dtq.domain.task import QueueName, TaskId

DONE: Final = "done"
"""The outcome of an act that was done; that of a refused one is the code of its refusal."""

INTERRUPTED: Final = "interrupted"
"""The outcome of an act of many parts that was stopped before all of them were done."""


class Actor(Struct, frozen=True, kw_only=True):
    """Who asks for an administrative act, and in which request."""

    name: str
    request_id: str


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One administrative act (contract section 13); ``queue``, ``count``, ``outcome`` and ``subject`` are additions.

    ``subject`` names what was acted on where that is neither a task nor a queue.
    """

    actor: str
    action: str
    ts: datetime
    request_id: str
    task_id: TaskId | None = None
    queue: QueueName | None = None
    count: int | None = None
    outcome: str = DONE
    subject: str | None = None


def audited(
    action: str,
    *,
    by: Actor,
    at: datetime,
    task_id: TaskId | None = None,
    queue: QueueName | None = None,
    count: int | None = None,
    outcome: str = DONE,
    subject: str | None = None,
) -> AuditEntry:
    """Write down that *by* did *action*, or was refused it."""
    return AuditEntry(
        actor=by.name,
        action=action,
        ts=at,
        request_id=by.request_id,
        task_id=task_id,
        queue=queue,
        count=count,
        outcome=outcome,
        subject=subject,
    )
