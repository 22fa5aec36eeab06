"""The lines that are written most, made in a fifth of the time: the steps of tasks that go as they should.

They read as the processors would make them; whatever is unusual about a step is left to those.
"""

import re
from collections.abc import Callable, Collection, Sequence
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from time import time_ns  # noqa: TID251 - a line tells its own time, as those of the processors do
from typing import Final

from structlog.contextvars import get_contextvars

from dtq.domain.change import Change
from dtq.domain.events import EventType
from dtq.domain.task import Task

SAID: Final = "task changed"

Brief = Callable[[Sequence[Change]], Sequence[str | None]]
"""Makes the lines of changes that are told of together, and so at one time; None where the processors must."""

_KINDS: Final = 1024
"""How many kinds of line are kept: of each step, queue and task type one."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:-]{0,1000}")
_REQUEST: Final = "request_id"
_MILLISECOND: Final = timedelta(milliseconds=1)


def brief(*, service: str, worker_id: str | None, as_json: bool, warned_of: Collection[EventType]) -> Brief:
    """Return what makes such lines, in JSON or for people to read; of no event in *warned_of*."""
    template, filled = (_json_template, _json_line) if as_json else (_readable_template, _readable)
    named = f',"{_REQUEST}":"%s"' if as_json else f"{_REQUEST}=%s "

    @lru_cache(_KINDS)
    def common(event: EventType, status: str, queue: str, task_type: str, worker: str | None) -> str | None:
        if event in warned_of or not _PLAIN.fullmatch(f"{service}{queue}{task_type}{worker or ''}"):
            return None
        return template(event=event, status=status, queue=queue, task_type=task_type, service=service, worker=worker)

    def line(change: Change, *, now: str, around: str) -> str | None:
        event, task = change.event, change.after
        if event is None or task.failure is not None or change.audit is not None:
            return None
        if not _PLAIN.fullmatch(task.task_id):
            return None
        known = common(event.type, task.status, task.queue, task.task_type, event.worker_id or worker_id)
        return filled(known, now, task, around) if known else None

    def lines(changes: Sequence[Change]) -> Sequence[str | None]:
        # most have nothing around them at all, and so nothing that would be looked through
        around = _around(named) if copy_context() else ""
        second, microsecond = divmod(time_ns() // 1000, 1_000_000)
        # the processors leave a fraction out that is zero
        if around is None or not microsecond:
            return [None] * len(changes)
        now = f"{_second(second)}.{microsecond:06d}Z"
        return [line(change, now=now, around=around) for change in changes]

    return lines


def _around(named: str) -> str | None:
    """Return what a line says of the request in which it is written; None where more goes on than that."""
    around = get_contextvars()
    if not around:
        return ""
    request_id = around.get(_REQUEST)
    is_plain = len(around) == 1 and type(request_id) is str and _PLAIN.fullmatch(request_id)
    return named % request_id if is_plain else None


def _readable_template(*, event: str, status: str, queue: str, task_type: str, service: str, worker: str | None) -> str:
    return (
        f"%s [info] {SAID} attempt=%d %sevent_type={event} queue={queue} %sservice={service} status={status} "
        f"task_id=%s task_type={task_type}{'' if worker is None else f' worker_id={worker}'}"
    )


def _readable(template: str, now: str, task: Task, around: str) -> str:
    ran = "" if task.duration is None else f"duration_ms={task.duration // _MILLISECOND} "
    return template % (now, task.attempt, ran, around, task.task_id)


def _json_template(*, event: str, status: str, queue: str, task_type: str, service: str, worker: str | None) -> str:
    worker_id = "null" if worker is None else f'"{worker}"'
    return (
        f'{{"timestamp":"%s","level":"info","service":"{service}",'
        f'"worker_id":{worker_id},"task_id":"%s",'
        f'"task_type":"{task_type}","queue":"{queue}","attempt":%d,"status":"{status}","duration_ms":%s,'
        f'"event_type":"{event}","event":"{SAID}"%s}}'
    )


def _json_line(template: str, now: str, task: Task, around: str) -> str:
    ran = "null" if task.duration is None else task.duration // _MILLISECOND
    return template % (now, task.task_id, task.attempt, ran, around)


@lru_cache(2)
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().removesuffix("+00:00")
