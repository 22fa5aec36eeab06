"""What Prometheus scrapes of an API."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Protocol

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException
from litestar.openapi.datastructures import ResponseSpec

from dtq.application.lag import LoopLag
from dtq.application.readings import Readings
from dtq.application.rejections import reason_of
from dtq.application.tasks import TaskService
from dtq.domain.errors import DtqError, PayloadTooLarge
from dtq.entrypoints.http.describe import operation
from dtq.ports.survey import Survey


class Exposition(Protocol):
    """The metrics of this process."""

    @property
    def content_type(self) -> str:
        """What ``text`` is."""
        ...

    def show(self, survey: Survey | None, *, workers_active: int) -> None:
        """Show what was just read of the whole deployment."""
        ...

    def text(self) -> bytes:
        """Write everything down; on any thread."""
        ...

    def watch_loop(self, lag: Callable[[], float]) -> None:
        """Show what *lag* returns from now on."""
        ...


class Scrapes:
    """Answers scrapes, one at a time: whoever scrapes without end keeps no more than one thread busy."""

    def __init__(self, exposition: Exposition, *, readings: Readings) -> None:
        self.content_type = exposition.content_type
        self._exposition = exposition
        self._readings = readings
        self._turn = asyncio.Lock()

    async def text(self) -> bytes:
        """Return the metrics; without those of the whole deployment where the broker could not be asked."""
        async with self._turn:
            reading = await self._readings.take()
            if reading is None:
                self._exposition.show(None, workers_active=0)
            else:
                self._exposition.show(reading.survey, workers_active=reading.workers_active)
            # thousands of series take longer than other requests should wait
            return await asyncio.to_thread(self._exposition.text)


def count_unread(error: DtqError | HTTPException, *, tasks: TaskService) -> None:
    """Count a submission that is refused because it cannot be read."""
    if isinstance(error, DtqError):
        tasks.rejected(reason_of(error))
    elif error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        tasks.rejected(PayloadTooLarge.code.lower())


@get(
    "/metrics",
    operation_class=operation(),
    tags=["health"],
    summary="Metrics for Prometheus",
    responses={
        HTTPStatus.OK: ResponseSpec(
            str,
            media_type="text/plain",
            description="Every metric of this process, and the gauges of the whole deployment, at most 2 s old",
            generate_examples=False,
        )
    },
)
async def metrics(scrapes: NamedDependency[Scrapes]) -> Response[bytes]:
    """Answer with the text format of Prometheus, also while the broker is away: then without the latter gauges."""
    # Litestar names the charset of every text, once more if it is there
    return Response(await scrapes.text(), media_type=scrapes.content_type.partition("; charset=")[0])


@contextlib.asynccontextmanager
async def watched(lag: LoopLag, *, shown_by: Exposition) -> AsyncIterator[None]:
    """Look at how late the event loop is, for as long as the application lives."""
    shown_by.watch_loop(lag.worst)
    watching = asyncio.create_task(lag.run(), name="lag")
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait({watching})
