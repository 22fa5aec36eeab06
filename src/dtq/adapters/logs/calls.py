"""Loggers whose calls never raise: a wrong one is written as far as it can be understood, without its arguments."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog

from dtq.domain.text import class_name, text_of

MISTAKE: Final = "logging_error"
"""The field that names what is wrong with a call."""

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_SAME_AS: Final = {"msg": "info", "warn": "warning", "exception": "error", "fatal": "critical"}

Write = Callable[..., None]


def bound_logger(level: str) -> type[Any]:
    """Return structlog's kind of logger for lines from *level* on."""
    plain = structlog.make_filtering_bound_logger(level)
    lowest = logging.getLevelNamesMapping()[level]
    calls = {name: _call(_SAME_AS.get(name, name), lowest=lowest) for name in (*_LEVELS, *_SAME_AS)}
    calls["exception"] = _with_error(calls["error"])
    calls["log"] = _of_any_level(lowest=lowest)
    awaited = {f"a{name}": _awaited(call) for name, call in calls.items()}
    return type("UnfailingLogger", (plain,), {**calls, **awaited})


def interpolated(template: object, arguments: tuple[object, ...]) -> tuple[str, str | None]:
    """Return what a call says, and the class of the error where its arguments do not fit or cannot be printed."""
    try:
        return _interpolated(template, arguments), None
    except BaseException as error:  # noqa: BLE001 - a stranger's __str__ may raise anything, and a log line is no reason to fail
        return text_of(template), class_name(error)


def _interpolated(template: object, arguments: tuple[object, ...]) -> str:
    text = str(template)
    if arguments:
        only = arguments[0] if len(arguments) == 1 else None
        text = text % (only if isinstance(only, Mapping) and only else arguments)
    return str.__str__(text)


def _call(name: str, *, lowest: int) -> Write:
    if _LEVELS[name] < lowest:
        return _unheard

    def write(self: Any, /, *given: object, **fields: object) -> None:
        _write(self, name, given, fields)

    return write


def _unheard(_: Any, /, *__: object, **___: object) -> None:
    """Write nothing."""


def _with_error(call: Write) -> Write:
    def write(self: Any, /, *given: object, **fields: object) -> None:
        call(self, *given, **{"exc_info": True, **fields})

    return write


def _of_any_level(*, lowest: int) -> Write:
    def write(self: Any, /, *given: object, **fields: object) -> None:
        level = given[0] if given else fields.pop("level", None)
        number = level if type(level) is int else logging.INFO
        if number >= lowest:
            wrong = {} if type(level) is int else {MISTAKE: "TypeError"}
            name = max((one for one in _LEVELS if _LEVELS[one] <= number), key=_LEVELS.__getitem__, default="debug")
            _write(self, name, given[1:], {**fields, **wrong})

    return write


def _awaited(call: Write) -> Callable[..., Awaitable[None]]:
    async def write(self: Any, /, *given: object, **fields: object) -> None:
        call(self, *given, **fields)

    return write


def _write(logger: Any, name: str, given: tuple[object, ...], fields: dict[str, object]) -> None:
    named = fields.pop("event", None)
    event, mistake = interpolated(given[0] if given else named, given[1:])
    if mistake is not None or bool(given) is (named is not None):
        fields[MISTAKE] = mistake or "TypeError"
    try:
        # not by its _proxy_to_logger, which has fields of some names for parameters of its own
        arguments, _ = logger._process_event(name, event, fields)  # noqa: SLF001 - documented for loggers of one's own
        getattr(logger._logger, name)(*arguments)  # noqa: SLF001 - the same
    except structlog.DropEvent:
        return
