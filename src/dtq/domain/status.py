"""The states of a task, the legal steps between them, and the place that each state lives in."""

from collections.abc import Mapping
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final


class TaskStatus(StrEnum):
    """Where a task stands in its life (contract section 1)."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    FAILED = "failed"
    DEAD_LETTERED = "dead_lettered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    # as a member equals its text; the hash of enumerations is made in Python, and looked up several times a step
    __hash__ = str.__hash__


class Place(Enum):
    """The one structure of a broker that keeps a task alive."""

    SCHEDULE = "schedule"
    READY = "ready"
    HELD = "held"
    DEAD = "dead"
    NOWHERE = "nowhere"

    # the hash of enumerations is made in Python, and a member equals nothing but itself
    __hash__ = object.__hash__


_S = TaskStatus

VALID_TRANSITIONS: Final[Mapping[TaskStatus, frozenset[TaskStatus]]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.QUEUED, _S.CANCELLED, _S.EXPIRED}),
        _S.QUEUED: frozenset({_S.RUNNING, _S.CANCELLED, _S.EXPIRED}),
        _S.RUNNING: frozenset({_S.SUCCEEDED, _S.RETRYING, _S.FAILED, _S.DEAD_LETTERED, _S.CANCELLED}),
        _S.RETRYING: frozenset({_S.QUEUED, _S.CANCELLED}),
        _S.SUCCEEDED: frozenset(),
        _S.FAILED: frozenset(),
        _S.DEAD_LETTERED: frozenset(),
        _S.CANCELLED: frozenset(),
        _S.EXPIRED: frozenset(),
    }
)
"""The contract's table, word for word."""

ADMIN_TRANSITIONS: Final[Mapping[TaskStatus, frozenset[TaskStatus]]] = MappingProxyType(
    {_S.DEAD_LETTERED: frozenset({_S.QUEUED})}
)
"""What an operator alone may do: requeue a dead letter, which starts a new life."""

STEPS: Final[Mapping[TaskStatus, frozenset[TaskStatus]]] = MappingProxyType(
    {before: onward | ADMIN_TRANSITIONS.get(before, frozenset()) for before, onward in VALID_TRANSITIONS.items()}
)
"""Whatever step a task may make, an operator's requeue included."""

INITIAL: Final = frozenset({_S.PENDING, _S.QUEUED})
"""The states in which a task may come into being."""

TERMINAL: Final = frozenset(status for status, onward in VALID_TRANSITIONS.items() if not onward)
"""The states that only an operator can leave."""

WAITING_FOR_TIME: Final = frozenset({_S.PENDING, _S.RETRYING})
"""The states that live in the schedule until they are due."""

HOMES: Final[Mapping[TaskStatus, Place]] = MappingProxyType(
    {
        _S.PENDING: Place.SCHEDULE,
        _S.QUEUED: Place.READY,
        _S.RUNNING: Place.HELD,
        _S.SUCCEEDED: Place.NOWHERE,
        _S.RETRYING: Place.SCHEDULE,
        _S.FAILED: Place.NOWHERE,
        _S.DEAD_LETTERED: Place.DEAD,
        _S.CANCELLED: Place.NOWHERE,
        _S.EXPIRED: Place.NOWHERE,
    }
)
"""The place that a task of each status lives in, before it is discarded from there."""


def is_legal(before: TaskStatus, after: TaskStatus) -> bool:
    """Tell whether a task may step from *before* to *after*, an operator's requeue included."""
    return after in STEPS[before]
