"""What others say, in the same lines: libraries, handlers, and errors that nobody caught."""

import logging
import sys
import threading
from collections.abc import Collection

from dtq.adapters.logs.observer import LogObserver


class LogHandler(logging.Handler):
    """Brings what libraries log through the logging module into the same stream, as lines of the same form."""

    def __init__(self, observer: LogObserver) -> None:
        super().__init__()
        self._observer = observer

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        named = {} if error is None else {"error_class": type(error).__name__}
        level = record.levelname if record.levelname in logging.getLevelNamesMapping() else "INFO"
        message = record.getMessage()
        if record.name == "asyncio":
            # further lines show objects, and with them what an error says
            message = message.partition("\n")[0]
        self._observer.log(level, message, logger=record.name, **named)


def take_over(observer: LogObserver, *, level: str, packages: Collection[str]) -> None:
    """Bring into the same lines what handlers log, of *packages* from *level* on, what libraries warn of, and crashes.

    Handlers may log through the logging module or structlog.
    """
    logging.basicConfig(handlers=[LogHandler(observer)], level=logging.WARNING, force=True)
    for package in packages:
        logging.getLogger(package).setLevel(level)
    observer.share()
    sys.excepthook = lambda _, error, __: observer.crashed("crashed", error)
    threading.excepthook = lambda crash: observer.crashed("thread_crashed", crash.exc_value or SystemExit())
