"""A worker as a process: signals, exit codes, and an end that no thread can hold up."""

import asyncio
import signal
import sys
from functools import partial
from typing import Final, NoReturn

from dtq.application.presence import WorkerIdInUse, WorkerReplaced
from dtq.application.worker import Worker
from dtq.domain.errors import UnsuitableBroker
from dtq.entrypoints import loops
from dtq.entrypoints.config import Settings, export_for_handlers
from dtq.entrypoints.container import Container, build, take_over_logging, worker_id_of
from dtq.entrypoints.forking import set_children_free
from dtq.entrypoints.leaving import leave
from dtq.entrypoints.worker_http import HEALTH, Page, WorkerHttp, listen
from dtq.handlers.registry import Registry

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
UNUSABLE: Final = 2
FAILED: Final = 1


def run(settings: Settings, *, registry: Registry) -> NoReturn:
    """Work until a first signal asks to drain, or a second to end now; then end the process.

    Its exit code is one of dtq.application.settings.ExitCode, or 2 where it cannot work at all, or another
    worker has taken its id.
    """
    export_for_handlers(settings)
    set_children_free()
    container = build(settings, registry=registry, service="worker", worker_id=worker_id_of(settings))
    take_over_logging(container)
    code = FAILED
    with loops.runner() as runner:
        try:
            code = loops.run_on(runner, _work(container), on_exit=partial(_note_exit, container))
        finally:
            # inside the runner: its end waits for threads, and a sync handler's thread may never end
            _leave(code, container)


async def _work(container: Container) -> int:
    worker = container.worker()
    try:
        _serve_pages(container, worker)
    except OSError as error:
        port = container.settings().worker_metrics_port
        container.log().log("ERROR", "cannot_listen", port=port, reason=str(error))
        return UNUSABLE
    watching = asyncio.create_task(container.lag().run(), name="lag")
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, worker.request_stop)
    loops.spare_what_stays()
    try:
        return await worker.run()
    except (WorkerIdInUse, UnsuitableBroker) as error:
        what = "worker_replaced" if isinstance(error, WorkerReplaced) else "worker_cannot_start"
        container.log().log("ERROR", what, code=error.code, reason=str(error))
        return UNUSABLE
    finally:
        watching.cancel()


def _serve_pages(container: Container, worker: Worker) -> None:
    """Serve /metrics and /health until the process ends, if the operator wants them. Raises OSError."""
    port, metrics = container.settings().worker_metrics_port, container.metrics()
    metrics.watch_worker(lambda: worker.active)
    metrics.watch_loop(container.lag().worst)
    if port:
        pages = {"/metrics": Page(content_type=metrics.content_type, text=metrics.text), "/health": HEALTH}
        WorkerHttp(listen(port), pages=pages).start()
        container.log().log("INFO", "worker_serves", port=port)


def _note_exit(container: Container, error_class: str) -> None:
    container.log().noticed("handler_asked_to_exit", error_class=error_class)


def _leave(code: int, container: Container) -> NoReturn:
    error = sys.exc_info()[1]
    if error is not None:
        container.log().crashed("worker_crashed", error)
    leave(code)
