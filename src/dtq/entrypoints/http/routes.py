"""Which endpoints there are, and which of them need the key."""

from collections.abc import Sequence
from typing import Any, Final

from litestar import Router
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler

from dtq.application.requests import BESIDE_PAYLOAD_BYTES
from dtq.entrypoints.config import Settings
from dtq.entrypoints.http import batch, dead_letters, doctor, explanations, overview, queues, tasks
from dtq.entrypoints.http.auth import AnyConnection, AnyRequest, KeyGuard, actor_of
from dtq.entrypoints.http.queries import refuse_unknown

SECURITY_SCHEME: Final = "ApiKey"


def routers(settings: Settings, *, guard: KeyGuard) -> Sequence[Router]:
    """Return the endpoints below /api/v1."""
    # methods comes first: it stands in for what Litestar would add
    submissions = [tasks.methods, tasks.submit, tasks.show, tasks.show_recent]

    async def keep_out(request: AnyRequest) -> None:
        # no guard of Litestar's, which are given a copy of the handler for each request
        guard.keep_out(request, request.route_handler)
        await refuse_unknown(request)

    submits: dict[str, Any] = {"tags": ["tasks"], "before_request": keep_out}
    request_bytes = settings.max_payload_bytes + BESIDE_PAYLOAD_BYTES
    of_batches = {"request_max_body_size": settings.max_batch_bytes, "opt": {"max_item_bytes": request_bytes}}
    return [
        _open("/api/v1/tasks", submissions, **submits),
        _open("/api/v1/tasks", [batch.submit_batch], **of_batches, **submits),
        _open("/api/v1/tasks", [explanations.explain], tags=["tasks"]),
        _open("/", [queues.show_all, queues.show], tags=["queues"]),
        _open("/", [dead_letters.show_recent, dead_letters.show], tags=["dead letters"]),
        _open("/", [overview.show_workers, overview.show_worker, overview.show_audit, overview.show_task_types]),
        _open("/", [doctor.examine], tags=["doctor"]),
        _guarded(guard, settings),
    ]


def _open(path: str, handlers: Sequence[HTTPRouteHandler], **settings: Any) -> Router:
    """Return what needs no key."""
    return Router(path, route_handlers=handlers, **{"before_request": refuse_unknown, **settings})


def _guarded(guard: KeyGuard, settings: Settings) -> Router:
    """Return the destructive acts: whoever asks for one must have the key, where there is one."""

    async def let_in(connection: AnyConnection, handler: BaseRouteHandler) -> None:
        # a function of its own: Litestar copies what it is given, and the guard's log cannot be copied; and no plain
        # one, which it would call on another thread
        guard.let_in(connection, handler)

    return Router(
        "/api/v1",
        route_handlers=[
            Router("/tasks", route_handlers=[tasks.cancel], tags=["tasks"]),
            Router("/queue", route_handlers=[queues.pause, queues.resume, queues.purge], tags=["queues"]),
            Router(
                "/dlq",
                route_handlers=[dead_letters.requeue, dead_letters.discard, dead_letters.purge],
                tags=["dead letters"],
            ),
            Router("/doctor", route_handlers=[doctor.repair], tags=["doctor"]),
        ],
        guards=[let_in],
        dependencies={"actor": Provide(actor_of, sync_to_thread=False)},
        before_request=refuse_unknown,
        security=[{SECURITY_SCHEME: []}] if settings.api_key else None,
    )
