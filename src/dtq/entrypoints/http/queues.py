"""The endpoints of queues."""

from http import HTTPStatus

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from msgspec import Struct

from dtq.application.queues import QueueService
from dtq.domain.audit import Actor
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.describe import QUEUE_NAME, answer, operation, problems
from dtq.entrypoints.http.queries import LIMIT, AnyRequest
from dtq.entrypoints.operator_views import QueueDetailBody, QueueList, queue_body, queue_detail

_REFUSALS = ("INVALID_REQUEST", "UNAUTHORIZED", "ORIGIN_NOT_ALLOWED", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE")


class Switched(Struct, frozen=True, kw_only=True):
    """Whether anything new may start in a queue, after what was asked."""

    queue: str
    paused: bool


class QueuePurged(Struct, frozen=True, kw_only=True):
    """How many entries that waited in a queue were removed, their tasks cancelled."""

    queue: str
    purged: int


@get(
    "/api/v1/queues",
    opt={"queries": (LIMIT,)},
    operation_class=operation(LIMIT),
    operation_id="list_queues",
    summary="List queues",
    responses={
        HTTPStatus.OK: answer(QueueList, "Queues in alphabetical order", examples.QUEUES),
        **problems("INVALID_REQUEST", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show_all(request: AnyRequest, queues: NamedDependency[QueueService]) -> QueueList:
    """Return the known queues with their figures, each read in one step."""
    return QueueList(queues=[queue_body(stats) for stats in await queues.all(limit=LIMIT.of(request))])


@get(
    "/api/v1/queues/{queue:str}",
    operation_class=operation(QUEUE_NAME),
    operation_id="show_queue",
    summary="Show a queue",
    responses={
        HTTPStatus.OK: answer(QueueDetailBody, "The queue", examples.QUEUE_DETAIL),
        **problems("INVALID_REQUEST", "QUEUE_NOT_FOUND", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show(queue: FromPath[str], queues: NamedDependency[QueueService]) -> QueueDetailBody:
    """Return the figures of a queue, the dead letters of all queues, and how many workers serve it."""
    return queue_detail(await queues.detail(queue))


@post(
    "/{queue:str}/pause",
    status_code=HTTPStatus.OK,
    opt={"action": "queue.pause"},
    operation_class=operation(QUEUE_NAME),
    operation_id="pause_queue",
    summary="Pause a queue",
    responses={
        HTTPStatus.OK: answer(Switched, "The queue is paused", examples.PAUSED),
        **problems(*_REFUSALS, "QUEUE_FULL"),
    },
)
async def pause(
    queue: FromPath[str], *, actor: NamedDependency[Actor], queues: NamedDependency[QueueService]
) -> Switched:
    """Let nothing new start in a queue; what runs goes on. A queue that nobody knows becomes known."""
    await queues.pause(queue, by=actor)
    return Switched(queue=queue, paused=True)


@post(
    "/{queue:str}/resume",
    status_code=HTTPStatus.OK,
    opt={"action": "queue.resume"},
    operation_class=operation(QUEUE_NAME),
    operation_id="resume_queue",
    summary="Resume a queue",
    responses={HTTPStatus.OK: answer(Switched, "The queue is not paused", examples.RESUMED), **problems(*_REFUSALS)},
)
async def resume(
    queue: FromPath[str], *, actor: NamedDependency[Actor], queues: NamedDependency[QueueService]
) -> Switched:
    """Let work start again in a queue."""
    await queues.resume(queue, by=actor)
    return Switched(queue=queue, paused=False)


@post(
    "/{queue:str}/purge",
    status_code=HTTPStatus.OK,
    opt={"action": "queue.purge"},
    operation_class=operation(QUEUE_NAME),
    operation_id="purge_queue",
    summary="Purge a queue",
    responses={
        HTTPStatus.OK: answer(QueuePurged, "What waited is gone", examples.QUEUE_PURGED),
        **problems(*_REFUSALS),
    },
)
async def purge(
    queue: FromPath[str], *, actor: NamedDependency[Actor], queues: NamedDependency[QueueService]
) -> QueuePurged:
    """Cancel what waits in a queue and was not read by a worker. Delayed tasks and retries stay."""
    return QueuePurged(queue=queue, purged=await queues.purge(queue, by=actor))
