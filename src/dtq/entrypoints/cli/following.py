"""``--wait``: looking at a task until it has ended."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from dtq.application.tasks import TaskService, TaskView
from dtq.domain.errors import BrokerUnavailable, RecordUnreadable
from dtq.domain.status import TaskStatus
from dtq.entrypoints.cli.exits import Exit, print_error
from dtq.entrypoints.cli.numbers import seconds
from dtq.entrypoints.cli.output import print_answer, print_json, print_members
from dtq.entrypoints.cli.task_rows import advice_of, rows_of
from dtq.entrypoints.cli.unserved import why_it_waits
from dtq.entrypoints.container import Container
from dtq.entrypoints.views import full
from dtq.ports.environment import Clock

DEFAULT_WAIT_S: Final = 300.0
SHORTEST_LOOK: Final = timedelta(milliseconds=20)
LONGEST_LOOK: Final = timedelta(milliseconds=500)


def add_wait(parser: ArgumentParser) -> None:
    """Offer ``--wait``."""
    parser.add_argument(
        "--wait",
        nargs="?",
        type=seconds,
        const=DEFAULT_WAIT_S,
        metavar="SECONDS",
        help=f"follow the task to its end and print it with its result (default limit: {DEFAULT_WAIT_S:g} s)",
    )


async def follow(
    task_id: str,
    container: Container,
    *,
    limit: timedelta,
    as_json: bool,
    duplicate: bool = False,
    status: TaskStatus | None = None,
) -> Exit:
    """Print a task once it has ended, or as it is after *limit*, and say by the exit code which.

    Where the wait is cut off, by Ctrl-C or by a broker that stays away, what is known is printed: at least that there
    is a task, which had *status* when it was last heard of. Raises what cut it off.
    """
    looks = _Looks(task_id, container.tasks(), clock=container.backend().clock)
    try:
        view = await looks.until_ended(limit)
    except (BrokerUnavailable, asyncio.CancelledError) as error:
        is_spoiled = isinstance(error, RecordUnreadable)
        if looks.last is not None:
            print_view(looks.last, as_json=as_json, duplicate=duplicate)
        elif status is not None or duplicate:
            print_known(task_id, status=status, as_json=as_json, duplicate=duplicate)
        elif not is_spoiled:
            print_answer({"task_id": task_id, "status": None}, line=f"{task_id} unknown", as_json=as_json)
        if not as_json and not is_spoiled:
            print_error(f"dtq: this is what is known; the task goes on without this command: dtq get {task_id} --wait")
        raise
    print_view(view, as_json=as_json, duplicate=duplicate)
    if not view.task.is_terminal:
        if not as_json:
            await _tell_of_limit(view, container, limit=limit)
        return Exit.STILL_RUNNING
    return Exit.DONE if view.task.status is TaskStatus.SUCCEEDED else Exit.UNSUCCESSFUL


async def _tell_of_limit(view: TaskView, container: Container, *, limit: timedelta) -> None:
    """Say that the wait is over and the task is not, and where that can be known, why."""
    task = view.task
    why = await why_it_waits(task, container)
    print_error(
        f"dtq: after {limit.total_seconds():g} s the task is {task.status}{f': {why}' if why else ''}; "
        f"it goes on without this command: dtq get {task.task_id} --wait"
    )


def print_view(view: TaskView, *, as_json: bool, duplicate: bool = False) -> None:
    """Print everything of a task."""
    body = full(view, duplicate=True) if duplicate else full(view)
    if as_json:
        print_json(body)
        return
    print_members(rows_of(body))
    for advice in advice_of(view):
        print_error(f"dtq: {advice}")


def print_known(task_id: str, *, status: TaskStatus | None, as_json: bool, duplicate: bool = False) -> None:
    """Print that there is a task, and its status; None stands for one that has ended and is not kept any more."""
    body = {"task_id": task_id, "status": status, **({"duplicate": True} if duplicate else {})}
    line = " ".join([task_id, status or "ended", *(["(duplicate)"] if duplicate else [])])
    print_answer(body, line=line, as_json=as_json)


class _Looks:
    """Looking at a task again and again; ``last`` is what was seen last."""

    def __init__(self, task_id: str, tasks: TaskService, *, clock: Clock) -> None:
        self.last: TaskView | None = None
        self._task_id = task_id
        self._tasks = tasks
        self._clock = clock

    async def until_ended(self, limit: timedelta) -> TaskView:
        """Look until the task has ended or *limit* has passed, whatever the broker does meanwhile."""
        clock = self._clock
        ends_at = clock.monotonic() + limit.total_seconds()
        pauses = _pauses()
        while True:
            try:
                self.last = await self._tasks.get(self._task_id)
            except BrokerUnavailable as error:
                if isinstance(error, RecordUnreadable) or clock.monotonic() >= ends_at:
                    raise
            else:
                if self.last.task.is_terminal or clock.monotonic() >= ends_at:
                    return self.last
            left = timedelta(seconds=max(0.0, ends_at - clock.monotonic()))
            await clock.sleep(min(next(pauses), left))


def _pauses() -> Iterator[timedelta]:
    pause = SHORTEST_LOOK
    while True:
        yield pause
        pause = min(pause * 1.5, LONGEST_LOOK)
