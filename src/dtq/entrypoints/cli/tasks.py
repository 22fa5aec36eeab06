"""dtq submit, get, list, cancel."""

import argparse
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from dtq.application.tasks import Submitted, TaskService, TaskView
from dtq.domain.errors import BrokerUnavailable, TaskNotFound
from dtq.domain.status import TaskStatus
from dtq.entrypoints.cli import output
from dtq.entrypoints.cli.exits import Exit
from dtq.entrypoints.cli.session import actor, add_json, add_tasks, container_of, with_broker
from dtq.entrypoints.container import Container
from dtq.entrypoints.views import full, listed
from dtq.ports.environment import Clock

DEFAULT_WAIT_S: Final = 300.0
SHORTEST_LOOK: Final = timedelta(milliseconds=20)
LONGEST_LOOK: Final = timedelta(milliseconds=500)


def add_to(commands: "argparse._SubParsersAction[ArgumentParser]") -> None:
    """Add the commands of tasks."""
    _add_submit(commands.add_parser("submit", help="submit a task", allow_abbrev=False))
    _add_rest(commands)


def _add_submit(parser: ArgumentParser) -> None:
    parser.add_argument("--type", required=True, metavar="NAME", help="the task's type")
    parser.add_argument("--payload", required=True, metavar="JSON", help="a JSON object; - reads it from stdin")
    parser.add_argument("--queue", metavar="QUEUE", help="default: default")
    parser.add_argument("--idempotency-key", metavar="KEY", help="submit at most once under this key")
    parser.add_argument("--max-attempts", type=int, metavar="N", help="how often it may be started")
    parser.add_argument("--priority", type=int, metavar="0-9", help="9 goes first (default: 5)")
    parser.add_argument("--timeout-ms", type=int, metavar="MS", help="how long one attempt may take")
    parser.add_argument("--delay-seconds", type=float, metavar="S", help="when it may start at the earliest")
    parser.add_argument("--metadata", metavar="JSON", help="a JSON object; ttl_seconds in it limits the wait")
    wait_help = f"follow the task to its end and print it with its result (default limit: {DEFAULT_WAIT_S:g} s)"
    parser.add_argument("--wait", nargs="?", type=_seconds, const=DEFAULT_WAIT_S, metavar="SECONDS", help=wait_help)
    add_tasks(parser)
    add_json(parser)
    parser.set_defaults(run=submit)


def _add_rest(commands: "argparse._SubParsersAction[ArgumentParser]") -> None:
    parser = commands.add_parser("get", help="show a task", allow_abbrev=False)
    parser.add_argument("task_id")
    add_json(parser)
    parser.set_defaults(run=show)
    parser = commands.add_parser("list", help="list the last tasks, newest first", allow_abbrev=False)
    parser.add_argument("--queue", metavar="QUEUE")
    parser.add_argument("--status", metavar="STATUS", help=", ".join(TaskStatus))
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="1..500 (default: 50)")
    add_json(parser)
    parser.set_defaults(run=show_recent)
    parser = commands.add_parser("cancel", help="cancel a task", allow_abbrev=False)
    parser.add_argument("task_id")
    add_json(parser)
    parser.set_defaults(run=cancel)


def submit(arguments: Namespace) -> Exit:
    """Submit a task, and follow it where that is asked."""
    fields = {
        "task_type": arguments.type,
        "payload": sys.stdin.read() if arguments.payload == "-" else arguments.payload,
        "queue": arguments.queue,
        "idempotency_key": arguments.idempotency_key,
        "max_attempts": arguments.max_attempts,
        "priority": arguments.priority,
        "timeout_ms": arguments.timeout_ms,
        "delay_seconds": arguments.delay_seconds,
        "metadata": arguments.metadata,
    }

    async def use(container: Container) -> Exit:
        tasks = container.tasks()
        submitted = await tasks.submit(fields)
        if arguments.wait is None:
            return _print_submitted(submitted, as_json=arguments.json)
        limit = timedelta(seconds=arguments.wait)
        view = await _followed(submitted, tasks, clock=container.backend().clock, limit=limit)
        _print_view(view, as_json=arguments.json, duplicate=submitted.duplicate)
        if not view.task.is_terminal:
            return Exit.STILL_RUNNING
        return Exit.DONE if view.task.status is TaskStatus.SUCCEEDED else Exit.UNSUCCESSFUL

    return with_broker(container_of(arguments), use)


def show(arguments: Namespace) -> Exit:
    """Show a task."""

    async def use(container: Container) -> Exit:
        _print_view(await container.tasks().get(arguments.task_id), as_json=arguments.json)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def show_recent(arguments: Namespace) -> Exit:
    """List the last tasks."""

    async def use(container: Container) -> Exit:
        tasks = container.tasks()
        found = listed(await tasks.recent(queue=arguments.queue, status=arguments.status, limit=arguments.limit))
        if arguments.json:
            output.print_json(found)
        else:
            output.print_tasks(found)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def cancel(arguments: Namespace) -> Exit:
    """Cancel a task."""

    async def use(container: Container) -> Exit:
        task = await container.tasks().cancel(arguments.task_id, by=actor(container))
        if arguments.json:
            output.print_json({"task_id": task.task_id, "status": task.status})
        else:
            output.print_line(f"{task.task_id} {task.status}")
        return Exit.DONE

    return with_broker(container_of(arguments), use)


async def _followed(submitted: Submitted, tasks: TaskService, *, clock: Clock, limit: timedelta) -> TaskView:
    """Look at a task until it has ended or *limit* has passed, whatever the broker does meanwhile."""
    ends_at = clock.monotonic() + limit.total_seconds()
    for pause in _pauses():
        try:
            view = await tasks.get(submitted.task_id)
        except BrokerUnavailable:
            if clock.monotonic() >= ends_at:
                raise
        else:
            if view.task.is_terminal or clock.monotonic() >= ends_at:
                return view
        left = timedelta(seconds=max(0.0, ends_at - clock.monotonic()))
        await clock.sleep(min(pause, left))
    raise TaskNotFound(submitted.task_id)


def _pauses() -> Iterator[timedelta]:
    pause = SHORTEST_LOOK
    while True:
        yield pause
        pause = min(pause * 1.5, LONGEST_LOOK)


def _print_submitted(submitted: Submitted, *, as_json: bool) -> Exit:
    status = None if submitted.task is None else submitted.task.status
    if as_json:
        body: dict[str, Any] = {"task_id": submitted.task_id, "status": status}
        output.print_json({**body, "duplicate": True} if submitted.duplicate else body)
    else:
        words = [submitted.task_id, status or "ended", *(["(duplicate)"] if submitted.duplicate else [])]
        output.print_line(" ".join(words))
    return Exit.DONE


def _print_view(view: TaskView, *, as_json: bool, duplicate: bool = False) -> None:
    body = full(view, duplicate=True) if duplicate else full(view)
    if as_json:
        output.print_json(body)
    else:
        output.print_task(body)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= timedelta(days=365).total_seconds():
        raise argparse.ArgumentTypeError(f"must be a number of seconds, not {text!r}")
    return value
