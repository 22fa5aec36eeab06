"""The endpoints that show who works, what was done by whom, and what can be submitted."""

from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath
from msgspec import Meta, Struct

from dtq.application.audit import AuditTrail
from dtq.application.workers import WorkerService
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.describe import WORKER_ID, answer, operation, problems
from dtq.entrypoints.http.queries import LIMIT, WHOLE, AnyRequest
from dtq.entrypoints.operator_views import AuditList, WorkerBody, WorkerList, audit_list, worker_body
from dtq.handlers.registry import Registry


class TaskType(Struct, frozen=True, kw_only=True):
    """A task type that can be submitted here; `cpu_bound` marks handlers that hold the interpreter while they run."""

    task_type: str
    cpu_bound: bool
    payload_schema: Annotated[
        dict[str, Any], Meta(description="JSON Schema of the payload; any object will do where the handler is untyped.")
    ]


class TaskTypes(Struct, frozen=True, kw_only=True):
    """Task types in the order of their names."""

    task_types: list[TaskType]


@get(
    "/api/v1/workers",
    opt={"queries": (LIMIT,)},
    operation_class=operation(LIMIT),
    tags=["workers"],
    operation_id="list_workers",
    summary="List workers",
    responses={
        HTTPStatus.OK: answer(WorkerList, "Workers in the order of their ids", examples.WORKERS),
        **problems("INVALID_REQUEST", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show_workers(request: AnyRequest, workers: NamedDependency[WorkerService]) -> WorkerList:
    """Return the known workers as their last heartbeats tell of them."""
    return WorkerList(workers=[worker_body(view) for view in await workers.all(limit=LIMIT.of(request))])


@get(
    "/api/v1/workers/{worker_id:str}",
    operation_class=operation(WORKER_ID),
    tags=["workers"],
    operation_id="show_worker",
    summary="Show a worker",
    responses={
        HTTPStatus.OK: answer(WorkerBody, "The worker", examples.WORKER),
        **problems("INVALID_REQUEST", "WORKER_NOT_FOUND", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show_worker(worker_id: FromPath[str], workers: NamedDependency[WorkerService]) -> WorkerBody:
    """Return a worker as its last heartbeat tells of it; one that fell silent is `stale`."""
    return worker_body(await workers.get(worker_id))


@get(
    "/api/v1/audit",
    opt={"queries": (LIMIT,)},
    operation_class=operation(LIMIT),
    tags=["audit"],
    operation_id="list_audit",
    summary="Show the audit trail",
    responses={
        HTTPStatus.OK: answer(AuditList, "Acts of operators, the newest first", examples.AUDIT),
        **problems("INVALID_REQUEST", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def show_audit(request: AnyRequest, trail: NamedDependency[AuditTrail]) -> AuditList:
    """Return the last destructive acts of API and command line, done or refused. About the last 10,000 are kept."""
    return audit_list(await trail.recent(limit=LIMIT.of(request)))


@get(
    "/api/v1/task-types",
    opt={"queries": (WHOLE,)},
    operation_class=operation(WHOLE),
    tags=["tasks"],
    operation_id="list_task_types",
    summary="List task types",
    responses={
        HTTPStatus.OK: answer(TaskTypes, "What can be submitted", examples.TASK_TYPES),
        **problems("INVALID_REQUEST"),
    },
)
async def show_task_types(request: AnyRequest, registry: NamedDependency[Registry]) -> TaskTypes:
    """Return the task types that can be submitted here: those of the modules in DTQ_TASK_MODULES."""
    shown = islice(registry, WHOLE.of(request))
    return TaskTypes(
        task_types=[
            TaskType(
                task_type=handler.name,
                cpu_bound=handler.cpu_bound,
                payload_schema=registry.payload_schema(handler.name),
            )
            for handler in shown
        ]
    )
