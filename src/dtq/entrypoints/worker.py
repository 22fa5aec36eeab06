"""A worker as a process: signals, exit codes, and an end that no thread can hold up."""

import asyncio
import os
import signal
import sys
import traceback
from typing import Final, NoReturn

from dtq.application.presence import WorkerIdInUse
from dtq.domain.errors import UnsuitableBroker
from dtq.entrypoints import loops
from dtq.entrypoints.config import Settings, export_for_handlers
from dtq.entrypoints.container import Container, build, take_over_logging, worker_id_of
from dtq.handlers.registry import Registry

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
UNUSABLE: Final = 2
FAILED: Final = 1


def run(settings: Settings, *, registry: Registry) -> NoReturn:
    """Work until a first signal asks to drain, or a second to end now; then end the process.

    Its exit code is one of dtq.application.settings.ExitCode, or 2 where it cannot work at all.
    """
    export_for_handlers(settings)
    container = build(settings, registry=registry, service="worker", worker_id=worker_id_of(settings))
    take_over_logging(container)
    code = FAILED
    with loops.runner() as runner:
        try:
            code = runner.run(_work(container))
        finally:
            # inside the runner: its end waits for threads, and a sync handler's thread may never end
            _leave(code)


async def _work(container: Container) -> int:
    worker = container.worker()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, worker.request_stop)
    try:
        return await worker.run()
    except (WorkerIdInUse, UnsuitableBroker) as error:
        container.log().log("ERROR", "worker_cannot_start", code=error.code, reason=str(error))
        return UNUSABLE


def _leave(code: int) -> NoReturn:
    if sys.exc_info()[1] is not None:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
