"""Whether the process lives, and whether it can serve."""

import asyncio
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from litestar import MediaType, Response, get
from litestar.di import NamedDependency

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.errors import BrokerUnavailable, UnsuitableBroker
from dtq.domain.text import class_name, text_of
from dtq.domain.timing import CLOCK_TOLERANCE
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.describe import answer, operation
from dtq.entrypoints.http.errors import RETRY_AFTER_S
from dtq.entrypoints.http.schemas import Health, Readiness
from dtq.ports.backend import Backend

PATIENCE: Final = timedelta(seconds=2)


@get(
    "/health",
    operation_class=operation(),
    tags=["health"],
    operation_id="health",
    summary="Is the process alive?",
    responses={HTTPStatus.OK: answer(Health, "It is", {"status": "ok"})},
)
async def health() -> Health:
    """Answer as long as the process lives, whatever the broker does."""
    return Health()


@get(
    "/ready",
    operation_class=operation(),
    tags=["health"],
    operation_id="ready",
    summary="Can requests be served?",
    responses={
        HTTPStatus.OK: answer(Readiness, "They can", examples.READY),
        HTTPStatus.SERVICE_UNAVAILABLE: answer(Readiness, "They cannot: the problems say why", examples.NOT_READY),
    },
)
async def ready(backend: NamedDependency[Backend]) -> Response[Readiness]:
    """Answer 200 if the broker can be used now, otherwise 503 with what stands in the way."""
    state = await readiness(backend)
    if state.problems:
        headers = {"Retry-After": str(RETRY_AFTER_S)}
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return Response(state, status_code=status, media_type=MediaType.JSON, headers=headers)
    return Response(state, status_code=HTTPStatus.OK, media_type=MediaType.JSON)


async def readiness(backend: Backend) -> Readiness:
    """Ask the broker how it is, and whether the default queue can be read; mend what is lost of that."""
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            facts = await backend.server.inspect()
            if not facts.problems and DEFAULT_QUEUE not in await backend.queues.names():
                await backend.queues.register(DEFAULT_QUEUE)
    except TimeoutError:
        return _unready(f"no answer within {PATIENCE.total_seconds():g} s")
    except (BrokerUnavailable, UnsuitableBroker) as error:
        return _unready(f"{class_name(error)}: {text_of(error)}")
    warnings = list(facts.warnings)
    if abs(facts.host_offset) > CLOCK_TOLERANCE:
        warnings.append(f"this host's clock is off from the broker's by {facts.host_offset.total_seconds():g} s")
    state = "not ready" if facts.problems else "ready"
    return Readiness(status=state, broker=facts.description, problems=list(facts.problems), warnings=warnings)


def _unready(problem: str) -> Readiness:
    return Readiness(status="not ready", broker="unknown", problems=[problem], warnings=[])
