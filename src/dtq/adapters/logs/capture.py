"""What others say, in the same lines: libraries, handlers, Python itself, and errors that nobody caught."""

import logging
import re
import sys
import threading
import types
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from dtq.adapters.logs.calls import MISTAKE, interpolated
from dtq.adapters.logs.observer import LogObserver
from dtq.adapters.logs.processors import error_of, of_error
from dtq.domain.text import class_name, text_of

_SHOWS_OBJECTS: Final = re.compile(r"\n|(?<= in callback) ")
"""Where asyncio begins to show objects, and with them what an error or an argument says."""
_WARNING: Final = re.compile(r"(?P<where>.*?:\d+): (?P<category>\w+): ")
_NEVER_AWAITED: Final = re.compile(r"coroutine '(?P<name>[\w.<>]+)' was never awaited")


class LogHandler(logging.Handler):
    """Brings what is logged through the logging module into the same stream, in the same form. Never raises."""

    def __init__(self, observer: LogObserver) -> None:
        super().__init__()
        self._observer = observer

    def emit(self, record: logging.LogRecord) -> None:
        # whoever made it by hand may have put anything into a record
        name, level = text_of(record.name), text_of(record.levelname)
        message, mistake = _message_of(record)
        fields = {"logger": name, **of_error(error_of(record.exc_info)), **_present(**{MISTAKE: mistake})}
        if name == "asyncio":
            message = _SHOWS_OBJECTS.split(message, maxsplit=1)[0]
        elif name == "py.warnings" and (warning := _WARNING.match(message)):
            message, fields = "warning", {**fields, **warning.groupdict()}
        self._observer.log(level if level in logging.getLevelNamesMapping() else "INFO", message, **fields)


def take_over(observer: LogObserver, *, level: str, packages: Collection[str]) -> None:
    """Bring into the same lines what handlers log, of *packages* from *level* on, what libraries warn of, and crashes.

    Handlers may log through the logging module or structlog. What Python itself would write to stderr is told by class
    and place: errors that it ignores, warnings, and wrong calls of the logging module, which cost their caller nothing.
    """
    logging.basicConfig(handlers=[LogHandler(observer)], level=logging.WARNING, force=True)
    for package in packages:
        logging.getLogger(package).setLevel(level)
    observer.share()
    sys.excepthook = lambda _, error, __: observer.crashed("crashed", error)
    threading.excepthook = lambda crash: observer.crashed("thread_crashed", _value_of(crash))
    sys.unraisablehook = lambda ignored: _tell_ignored(observer, ignored)
    warnings.showwarning = _showing(observer)
    # handlers that libraries bring along would print a wrong call with all its arguments
    logging.raiseExceptions = False
    logging.Logger._log = _forgiving(observer)  # type: ignore[method-assign]  # noqa: SLF001 - each logger has passed here


def _value_of(crash: threading.ExceptHookArgs) -> BaseException:
    return SystemExit() if crash.exc_value is None else crash.exc_value


def _message_of(record: logging.LogRecord) -> tuple[str, str | None]:
    arguments = () if record.args is None else record.args
    return interpolated(record.msg, arguments if type(arguments) is tuple else (arguments,))


def _tell_ignored(observer: LogObserver, ignored: "sys.UnraisableHookArgs") -> None:
    error = ignored.exc_value
    told = {"error_class": ignored.exc_type.__name__} if error is None else of_error(error)
    source = ignored.object
    code = source.__code__.co_qualname if type(source) is types.FunctionType else class_name(source)
    observer.log("ERROR", "exception_ignored", **told, source=code)


def _showing(observer: LogObserver) -> Callable[..., None]:
    plain = warnings.showwarning

    def show(message: Any, category: Any, filename: str, lineno: int, *more: Any, **named: Any) -> None:
        if any(one is not None for one in (*more[:1], named.get("file"))):
            plain(message, category, filename, lineno, *more, **named)
            return
        forgotten = _NEVER_AWAITED.match(text_of(message))
        told = _present(coroutine=forgotten["name"] if forgotten else None)
        observer.log("WARNING", "warning", category=class_name(message), where=f"{filename}:{lineno}", **told)

    return show


def _forgiving(observer: LogObserver) -> Callable[..., None]:
    plain = logging.Logger._log  # noqa: SLF001 - where every call of every logger passes, and meets what is wrong with it
    plain = getattr(plain, "plain", plain)

    def log(self: logging.Logger, level: int, msg: object, args: Any, *more: Any, **options: Any) -> None:
        try:
            if not more:
                # this function is not the caller whom other handlers name
                options["stacklevel"] = options.get("stacklevel", 1) + 1
            plain(self, level, msg, args, *more, **options)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a call, its caller has other things to do
            name = logging.getLevelName(level)
            known = name if name in logging.getLevelNamesMapping() else "INFO"
            observer.log(known, text_of(msg), logger=self.name, **{MISTAKE: class_name(error)})

    log.plain = plain  # type: ignore[attr-defined]  # so that a second take-over does not stand upon the first
    return log


def _present(**fields: str | None) -> Mapping[str, str]:
    return {name: value for name, value in fields.items() if value is not None}
