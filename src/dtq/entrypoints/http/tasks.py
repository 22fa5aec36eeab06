"""The endpoints of tasks."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec
from litestar import Request, Response, Router, get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import OpenAPIMediaType, Operation, Reference, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.params import FromPath, FromQuery

from dtq.application.tasks import Submitted, TaskService
from dtq.domain.errors import TaskNotFound
from dtq.entrypoints.http.auth import KEY_HEADER, KeyGuard
from dtq.entrypoints.http.schemas import Accepted, GoneDuplicate, check_content_type, task_fields, with_header
from dtq.entrypoints.views import TaskBody, TaskList, full, listed

JSON: Final = "application/json"
DEFAULT_LIMIT: Final = 50

AnyRequest = Request[Any, Any, Any]


@dataclass
class _SubmitOperation(Operation):
    """Describes the body that the handler reads by itself, so that payload text stays as it was sent."""

    def __post_init__(self) -> None:
        text, number = Schema(type=OpenAPIType.STRING), Schema(type=OpenAPIType.INTEGER)
        members: dict[str, Reference | Schema] = {
            "task_type": text,
            "payload": Schema(type=OpenAPIType.OBJECT),
            "queue": text,
            "idempotency_key": text,
            "max_attempts": number,
            "priority": number,
            "timeout_ms": number,
            "delay_seconds": Schema(type=OpenAPIType.NUMBER),
            "metadata": Schema(type=OpenAPIType.OBJECT),
        }
        schema = Schema(type=OpenAPIType.OBJECT, properties=members, required=["task_type", "payload"])
        self.request_body = RequestBody(content={JSON: OpenAPIMediaType(schema=schema)}, required=True)


@post("/", status_code=HTTPStatus.ACCEPTED, operation_class=_SubmitOperation, summary="Submit a task")
async def submit(request: AnyRequest, tasks: NamedDependency[TaskService]) -> Response[bytes]:
    """Accept a task (202), or answer with the ended task that its idempotency key belongs to (200)."""
    check_content_type(request.headers.get("content-type"))
    fields = task_fields(await request.body())
    submitted = await tasks.submit(with_header(fields, idempotency_key=request.headers.get("idempotency-key")))
    if submitted.duplicate or submitted.task is None:
        return _json(await _duplicate(submitted, tasks), status=HTTPStatus.OK)
    accepted = Accepted(task_id=submitted.task_id, status=submitted.task.status)
    location = {"Location": f"/api/v1/tasks/{submitted.task_id}"}
    return _json(accepted, status=HTTPStatus.ACCEPTED, headers=location)


@get("/{task_id:str}", summary="Show a task")
async def show(task_id: FromPath[str], tasks: NamedDependency[TaskService]) -> TaskBody:
    """Return a task with everything that is known of it."""
    return full(await tasks.get(task_id))


@get("/", summary="List tasks")
async def show_recent(
    tasks: NamedDependency[TaskService],
    queue: FromQuery[str | None] = None,
    status: FromQuery[str | None] = None,
    limit: FromQuery[int] = DEFAULT_LIMIT,
) -> TaskList:
    """Return the last tasks, the newest first, of one queue or status where that is asked."""
    return listed(await tasks.recent(queue=queue, status=status, limit=limit))


@post("/{task_id:str}/cancel", status_code=HTTPStatus.ACCEPTED, summary="Cancel a task")
async def cancel(
    request: AnyRequest,
    task_id: FromPath[str],
    *,
    tasks: NamedDependency[TaskService],
    guard: NamedDependency[KeyGuard],
) -> Accepted:
    """Cancel a waiting task (202) or ask for the cancellation of a running one (409)."""
    actor = guard.admit(request.scope, action="task.cancel", given=request.headers.get(KEY_HEADER))
    task = await tasks.cancel(task_id, by=actor)
    return Accepted(task_id=task.task_id, status=task.status)


def router() -> Router:
    """Return the endpoints, under their common path."""
    return Router("/api/v1/tasks", route_handlers=[submit, show, show_recent, cancel], tags=["tasks"])


async def _duplicate(submitted: Submitted, tasks: TaskService) -> TaskBody | GoneDuplicate:
    try:
        return full(await tasks.get(submitted.task_id), duplicate=True)
    except TaskNotFound:
        return GoneDuplicate(task_id=submitted.task_id)


def _json(body: object, *, status: HTTPStatus, headers: dict[str, str] | None = None) -> Response[bytes]:
    return Response(msgspec.json.encode(body), status_code=status, media_type=JSON, headers=headers)
