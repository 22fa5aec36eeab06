"""The endpoints of tasks."""

from http import HTTPStatus
from typing import Final

from litestar import HttpMethod, Request, Response, get, post, route
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException
from litestar.params import FromPath
from litestar.types import ASGIApp, Receive, Scope, Send

from dtq.application.creating import Submitted
from dtq.application.tasks import TaskService
from dtq.application.waiting import Waiting
from dtq.domain.audit import Actor
from dtq.domain.errors import DtqError, TaskNotFound
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.answering import answer_with
from dtq.entrypoints.http.describe import IDEMPOTENCY_KEY, TASK_ID, answer, operation, problems
from dtq.entrypoints.http.headers import check_content_type, only
from dtq.entrypoints.http.metrics import count_unread
from dtq.entrypoints.http.queries import LIMIT, QUEUE, STATUS, WAIT, AnyRequest
from dtq.entrypoints.http.schemas import Accepted, GoneDuplicate, task_fields, with_header
from dtq.entrypoints.views import TaskBody, TaskList, full, listed

_RECENT: Final = (QUEUE, STATUS, LIMIT)


@post(
    "/",
    status_code=HTTPStatus.ACCEPTED,
    opt={"open_action": "task.submit"},
    operation_class=operation(IDEMPOTENCY_KEY, body="SubmitTask"),
    operation_id="submit_task",
    summary="Submit a task",
    responses={
        HTTPStatus.ACCEPTED: answer(Accepted, "The task is accepted", examples.ACCEPTED),
        HTTPStatus.OK: answer(
            TaskBody | GoneDuplicate,  # type: ignore[arg-type]  # Litestar describes a union as one schema of several
            "A duplicate: the ended task that the idempotency key belongs to",
            examples.DUPLICATE,
            examples.GONE_DUPLICATE,
        ),
        **problems(
            "INVALID_TASK",
            "UNKNOWN_TASK_TYPE",
            "INVALID_REQUEST",
            "ORIGIN_NOT_ALLOWED",
            "IDEMPOTENCY_IN_PROGRESS",
            "PAYLOAD_TOO_LARGE",
            "QUEUE_FULL",
            "RECORD_UNREADABLE",
            "BROKER_UNAVAILABLE",
        ),
    },
)
async def submit() -> ASGIApp:
    """Accept a task (202), or answer with the ended task that its idempotency key belongs to (200)."""
    return _submitted


@get(
    "/{task_id:str}",
    opt={"queries": (WAIT,)},
    operation_class=operation(TASK_ID, WAIT),
    operation_id="show_task",
    summary="Show a task",
    responses={
        HTTPStatus.OK: answer(TaskBody, "The task", examples.TASK),
        **problems("INVALID_REQUEST", "TASK_NOT_FOUND", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE", "TOO_MANY_CLIENTS"),
    },
)
async def show(request: AnyRequest, task_id: FromPath[str], *, waiting: NamedDependency[Waiting]) -> TaskBody:
    """Return a task with everything that is known of it, where `wait` is given as soon as it has ended."""
    return full(await waiting.ended(task_id, within=WAIT.of(request)))


@get(
    "/",
    opt={"queries": _RECENT},
    operation_class=operation(*_RECENT),
    operation_id="list_tasks",
    summary="List tasks",
    responses={
        HTTPStatus.OK: answer(TaskList, "The last tasks, the newest first", examples.TASKS),
        **problems("INVALID_REQUEST", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show_recent(request: AnyRequest, tasks: NamedDependency[TaskService]) -> TaskList:
    """Return the last tasks, the newest first, of one queue or status where that is asked.

    Only the last 10,000 tasks are looked through.
    """
    queue, status, limit = QUEUE.of(request), STATUS.of(request), LIMIT.of(request)
    return listed(await tasks.recent(queue=queue, status=status, limit=limit))


@post(
    "/{task_id:str}/cancel",
    status_code=HTTPStatus.ACCEPTED,
    opt={"action": "task.cancel"},
    operation_class=operation(TASK_ID),
    operation_id="cancel_task",
    summary="Cancel a task",
    responses={
        HTTPStatus.ACCEPTED: answer(Accepted, "The task waited, and is canceled", examples.CANCELLED),
        **problems(
            "INVALID_REQUEST",
            "UNAUTHORIZED",
            "ORIGIN_NOT_ALLOWED",
            "TASK_NOT_FOUND",
            "CANCEL_REQUESTED",
            "TASK_TERMINAL",
            "RECORD_UNREADABLE",
            "BROKER_UNAVAILABLE",
        ),
    },
)
async def cancel(
    task_id: FromPath[str], *, actor: NamedDependency[Actor], tasks: NamedDependency[TaskService]
) -> Accepted:
    """Cancel a waiting task (202) or ask for the cancellation of a running one (409, each time)."""
    task = await tasks.cancel(task_id, by=actor)
    return Accepted(task_id=task.task_id, status=task.status)


@route("/", http_method=HttpMethod.OPTIONS, status_code=HTTPStatus.NO_CONTENT, include_in_schema=False)
async def methods() -> Response[None]:
    """Say what the path takes. Litestar does so by itself, but knows only the handler that it was told of first."""
    return Response(None, status_code=HTTPStatus.NO_CONTENT, headers={"Allow": "GET, OPTIONS, POST"})


async def _submitted(scope: Scope, receive: Receive, send: Send) -> None:
    request: AnyRequest = Request(scope, receive, send)
    tasks: TaskService = request.route_handler.opt["tasks"]()
    try:
        headers = request.headers
        check_content_type(headers)
        key = only("Idempotency-Key", headers=headers)
        fields = task_fields(await request.body())
    except (DtqError, HTTPException) as error:
        count_unread(error, tasks=tasks)
        raise
    submitted = await tasks.submit(with_header(fields, idempotency_key=key))
    if submitted.duplicate or submitted.task is None:
        await answer_with(await _duplicate(submitted, tasks), send=send, status=HTTPStatus.OK)
        return
    accepted = Accepted(task_id=submitted.task_id, status=submitted.task.status)
    location = (b"location", b"/api/v1/tasks/%b" % submitted.task_id.encode())
    await answer_with(accepted, location, send=send, status=HTTPStatus.ACCEPTED)


async def _duplicate(submitted: Submitted, tasks: TaskService) -> TaskBody | GoneDuplicate:
    try:
        return full(await tasks.get(submitted.task_id), duplicate=True)
    except TaskNotFound:
        return GoneDuplicate(task_id=submitted.task_id, status=None, duplicate=True)
