"""The endpoints of dead letters."""

from http import HTTPStatus
from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from msgspec import UNSET, Meta, Struct, UnsetType

from dtq.application.dead_letters import DeadLetterService
from dtq.domain.audit import Actor
from dtq.domain.status import TaskStatus
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.describe import TASK_ID, answer, operation, problems
from dtq.entrypoints.http.queries import LIMIT, AnyRequest
from dtq.entrypoints.operator_views import DeadLetterBody, DeadLetterList, dead_letter_body, dead_letter_in_full

_REFUSALS = (
    "INVALID_REQUEST",
    "UNAUTHORIZED",
    "ORIGIN_NOT_ALLOWED",
    "TASK_NOT_FOUND",
    "NOT_IN_DLQ",
    "NOT_DEAD_LETTERED",
    "DLQ_DISCARDED",
    "RECORD_UNREADABLE",
    "BROKER_UNAVAILABLE",
)


Detached = Annotated[bool, Meta(description="True where the task's idempotency key stands for it no more.")]


class Revived(Struct, frozen=True, kw_only=True):
    """A task that was requeued."""

    task_id: str
    status: TaskStatus
    idempotency_detached: Detached | UnsetType = UNSET


class Discarded(Struct, frozen=True, kw_only=True):
    """A task whose dead letter was taken out of the stream; its record stays as it is."""

    task_id: str
    status: TaskStatus
    discarded: bool


class DeadLettersPurged(Struct, frozen=True, kw_only=True):
    """How many entries were removed from the dead letters; the records of their tasks stay."""

    purged: int


@get(
    "/api/v1/dlq",
    opt={"queries": (LIMIT,)},
    operation_class=operation(LIMIT),
    operation_id="list_dead_letters",
    summary="List dead letters",
    responses={
        HTTPStatus.OK: answer(DeadLetterList, "Dead letters, the newest first", examples.DEAD_LETTERS),
        **problems("INVALID_REQUEST", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show_recent(request: AnyRequest, dead_letters: NamedDependency[DeadLetterService]) -> DeadLetterList:
    """Return the tasks of all queues that were given up last."""
    letters = await dead_letters.recent(limit=LIMIT.of(request))
    return DeadLetterList(
        dead_letters=[dead_letter_body(letter) for letter in letters], dlq_depth=await dead_letters.count()
    )


@get(
    "/api/v1/dlq/{task_id:str}",
    operation_class=operation(TASK_ID),
    operation_id="show_dead_letter",
    summary="Show a dead letter",
    responses={
        HTTPStatus.OK: answer(DeadLetterBody, "The dead letter, with its task", examples.DEAD_LETTER_IN_FULL),
        **problems("INVALID_REQUEST", "TASK_NOT_FOUND", "NOT_IN_DLQ", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show(task_id: FromPath[str], dead_letters: NamedDependency[DeadLetterService]) -> DeadLetterBody:
    """Return a dead letter with its task, payload and history included."""
    return dead_letter_in_full(await dead_letters.get(task_id))


@post(
    "/{task_id:str}/requeue",
    status_code=HTTPStatus.ACCEPTED,
    opt={"action": "dlq.requeue"},
    operation_class=operation(TASK_ID),
    operation_id="requeue_dead_letter",
    summary="Requeue a dead letter",
    responses={
        HTTPStatus.ACCEPTED: answer(Revived, "The task is queued again", examples.REQUEUED, examples.DETACHED),
        **problems(*_REFUSALS),
    },
)
async def requeue(
    task_id: FromPath[str], *, actor: NamedDependency[Actor], dead_letters: NamedDependency[DeadLetterService]
) -> Revived:
    """Start a new life of the task: attempt 0, its history kept in `metadata.previous_attempts`."""
    requeued = await dead_letters.requeue(task_id, by=actor)
    task, detached = requeued.task, requeued.is_detached or UNSET
    return Revived(task_id=task.task_id, status=task.status, idempotency_detached=detached)


@post(
    "/{task_id:str}/discard",
    status_code=HTTPStatus.OK,
    opt={"action": "dlq.discard"},
    operation_class=operation(TASK_ID),
    operation_id="discard_dead_letter",
    summary="Discard a dead letter",
    responses={
        HTTPStatus.OK: answer(Discarded, "The dead letter is gone, the task's record stays", examples.DISCARDED),
        **problems(*_REFUSALS),
    },
)
async def discard(
    task_id: FromPath[str], *, actor: NamedDependency[Actor], dead_letters: NamedDependency[DeadLetterService]
) -> Discarded:
    """Take a dead letter out of the stream; its task stays dead-lettered, with `metadata.discarded`."""
    task = await dead_letters.discard(task_id, by=actor)
    return Discarded(task_id=task.task_id, status=task.status, discarded=task.discarded)


@post(
    "/purge",
    status_code=HTTPStatus.OK,
    opt={"action": "dlq.purge"},
    operation_class=operation(),
    operation_id="purge_dead_letters",
    summary="Purge the dead letters",
    responses={
        HTTPStatus.OK: answer(DeadLettersPurged, "The stream is empty", examples.DEAD_LETTERS_PURGED),
        **problems("INVALID_REQUEST", "UNAUTHORIZED", "ORIGIN_NOT_ALLOWED", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def purge(actor: NamedDependency[Actor], dead_letters: NamedDependency[DeadLetterService]) -> DeadLettersPurged:
    """Remove every dead letter, of all queues; the records of their tasks stay dead-lettered."""
    return DeadLettersPurged(purged=await dead_letters.purge(by=actor))
