"""What a fetch brings of a task that waits for its first start: of its record, only what its entry does not say.

fetch.lua has compared the rest of the record with what is put in its place here: the task is the one that is stored.
"""

from collections.abc import Sequence
from typing import Any, Final

from dtq.adapters.redis.codec import (
    PAYLOAD,
    SNAPSHOT,
    SPOILED,
    duration_of,
    entry_id_of,
    moment_of,
    task_of,
    version_of,
)
from dtq.domain.entry import FIELDS, UNSTARTED
from dtq.domain.possible import impossibility
from dtq.domain.task import Task

_STATUS, _ATTEMPT = UNSTARTED

NAMES: Final = (*FIELDS, PAYLOAD)
"""The names of the fields of an entry, which one with a shortened record comes without."""

SHORT_LOOK: Final = (_STATUS.value, str(_ATTEMPT))
"""What fetch.lua compares records with, beside their entries."""

_TOLD: Final = ("version", "created_at", "available_at", "metadata", "ttl_at")


def waiting_task(told: Sequence[Any], entry: Sequence[Any], *, entry_id: str) -> Task | None:
    """Read the task of such an entry as codec.task_of would read its whole record. Raises UnreadableRecord."""
    version, created, available, metadata, expires = told
    task_id, queue, task_type, _, max_attempts, priority, timeout, key, payload = entry
    try:
        created_at = moment_of(created)
        task = Task(
            task_id=task_id,
            queue=queue,
            task_type=task_type,
            priority=int(priority),
            max_attempts=int(max_attempts),
            timeout=duration_of(timeout),
            created_at=created_at,
            available_at=created_at if available == created else moment_of(available),
            status=_STATUS,
            payload=payload,
            attempt=_ATTEMPT,
            metadata=metadata or "{}",
            idempotency_key=key or None,
            ttl_at=moment_of(expires) if expires else None,
            entry_id=entry_id_of(entry_id),
            version=version_of(version),
        )
        if impossibility(task) is None:
            return task
    except SPOILED:
        pass
    # what is wrong is said by who reads whole records
    status, attempt = SHORT_LOOK
    found = dict(zip(NAMES, entry, strict=True)) | dict(zip(_TOLD, told, strict=True))
    found |= {"entry_id": entry_id, "status": status, "attempt": attempt}
    return task_of([found.get(name) for name in SNAPSHOT], task_id=found["task_id"], payload=found[PAYLOAD])
