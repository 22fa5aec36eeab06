"""dtq submit, get, list, cancel."""

import asyncio
import sys
from argparse import Namespace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from dtq.application.creating import Submitted
from dtq.domain.status import TaskStatus
from dtq.entrypoints.cli.exits import Exit, Unusable, print_error
from dtq.entrypoints.cli.following import add_wait, follow, print_known, print_view
from dtq.entrypoints.cli.numbers import integer, number, seconds
from dtq.entrypoints.cli.output import print_json, print_rows
from dtq.entrypoints.cli.parsers import Offered, add_command, add_json, add_limit, add_task_id, add_tasks
from dtq.entrypoints.cli.session import actor, container_of, with_broker
from dtq.entrypoints.container import Container
from dtq.entrypoints.views import TaskBody, listed

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

_SUBMIT_NOTES: Final = """A file has one JSON object a line, with task_type, payload, and what else is to differ:
  {"task_type": "echo_task", "payload": {"n": 1}, "idempotency_key": "import-1"}
Options fill in what a line leaves out. A bad line is reported and the others go on. While a queue is full, the
command waits for room. Lines with an idempotency_key are submitted once, however often the file is: what was
interrupted is simply started again."""


def add_to(commands: "Commands") -> None:
    """Add the commands of tasks."""
    _add_submit(commands)
    parser = add_command(
        commands,
        "get",
        does="show a task: its status, its result or error, each of its attempts",
        run=show,
        examples=["dtq get TASK_ID", "dtq get TASK_ID --wait 60"],
    )
    add_task_id(parser)
    add_wait(parser)
    add_json(parser)
    parser = add_command(
        commands,
        "list",
        does="list the last tasks, the newest first",
        run=show_recent,
        examples=["dtq list --queue mail --status dead_lettered --limit 10"],
    )
    parser.add_argument("--queue", metavar="QUEUE", help="only those of this queue")
    parser.add_argument(
        "--status",
        choices=Offered(TaskStatus),
        metavar="STATUS",
        help=f"only those that are {', '.join(TaskStatus)}",
    )
    add_limit(parser)
    add_json(parser)
    parser = add_command(
        commands,
        "cancel",
        does="cancel a task, or ask for it where the task runs already (which ends with 4)",
        run=cancel,
        examples=["dtq cancel TASK_ID"],
    )
    add_task_id(parser)
    add_json(parser)


def _add_submit(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "submit",
        does="submit a task, or each task of a file",
        run=submit,
        notes=_SUBMIT_NOTES,
        examples=[
            """dtq submit --type echo_task --payload '{"hello": "world"}' --wait""",
            "dtq submit --file tasks.jsonl --queue mail",
        ],
    )
    parser.add_argument("--type", metavar="NAME", help="the task's type; with --file that of lines which name none")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--payload", metavar="JSON", help="a JSON object; - reads it from stdin")
    what.add_argument("--file", metavar="FILE", help="a file with a task a line; - reads stdin")
    parser.add_argument("--queue", metavar="QUEUE", help="the queue that it goes into (default: default)")
    parser.add_argument("--idempotency-key", metavar="KEY", help="submit at most once under this key")
    parser.add_argument("--max-attempts", type=integer, metavar="N", help="how often it may be started (default: 5)")
    parser.add_argument("--priority", type=integer, metavar="0-9", help="9 goes first (default: 5)")
    parser.add_argument("--timeout-ms", type=integer, metavar="MS", help="how long one attempt may take")
    parser.add_argument("--delay-seconds", type=number, metavar="S", help="when it may start at the earliest")
    parser.add_argument("--metadata", metavar="JSON", help="a JSON object; ttl_seconds in it limits the wait")
    parser.add_argument(
        "--patience",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="with --file: give up when for so long no line was taken (default: 60)",
    )
    add_wait(parser)
    add_tasks(parser)
    add_json(parser, help="print one JSON document; with --file one for each line, on one line")


def submit(arguments: Namespace) -> int:
    """Submit a task, and follow it where that is asked; or submit a file."""
    fields = {
        "task_type": arguments.type,
        "queue": arguments.queue,
        "max_attempts": arguments.max_attempts,
        "priority": arguments.priority,
        "timeout_ms": arguments.timeout_ms,
        "delay_seconds": arguments.delay_seconds,
        "metadata": arguments.metadata,
    }
    if arguments.file is not None:
        if arguments.idempotency_key is not None or arguments.wait is not None:
            arguments.refuse("--idempotency-key and --wait are for a single task, not for --file")
        from dtq.entrypoints.cli import bulk

        return bulk.submit_file(arguments, defaults=fields)
    if arguments.type is None:
        arguments.refuse("the following arguments are required: --type")
    payload = _stdin_text() if arguments.payload == "-" else arguments.payload
    return _submit_one(arguments, {**fields, "payload": payload, "idempotency_key": arguments.idempotency_key})


def _submit_one(arguments: Namespace, fields: dict[str, object]) -> Exit:
    async def use(container: Container) -> Exit:
        try:
            submitted = await container.tasks().submit(fields)
        except asyncio.CancelledError:
            print_error("dtq: interrupted while the task was being submitted: it may have been, or not")
            raise
        if arguments.wait is None:
            return _print_submitted(submitted, as_json=arguments.json)
        return await follow(
            submitted.task_id,
            container,
            limit=timedelta(seconds=arguments.wait),
            as_json=arguments.json,
            duplicate=submitted.duplicate,
            status=None if submitted.task is None else submitted.task.status,
        )

    return with_broker(container_of(arguments), use)


def show(arguments: Namespace) -> Exit:
    """Show a task, where that is asked not before it has ended."""

    async def use(container: Container) -> Exit:
        if arguments.wait is not None:
            return await follow(
                arguments.task_id, container, limit=timedelta(seconds=arguments.wait), as_json=arguments.json
            )
        print_view(await container.tasks().get(arguments.task_id), as_json=arguments.json)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def show_recent(arguments: Namespace) -> Exit:
    """List the last tasks."""

    async def use(container: Container) -> Exit:
        tasks = container.tasks()
        found = listed(await tasks.recent(queue=arguments.queue, status=arguments.status, limit=arguments.limit))
        if arguments.json:
            print_json(found)
        else:
            headings = ("task", "type", "queue", "priority", "status", "attempt", "created")
            print_rows(headings, [_row(task) for task in found.tasks], empty="no tasks")
            if found.unreadable:
                print_error(f"dtq: left out, for their records cannot be read: {found.unreadable}; see `dtq doctor`")
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def cancel(arguments: Namespace) -> Exit:
    """Cancel a task."""

    async def use(container: Container) -> Exit:
        task = await container.tasks().cancel(arguments.task_id, by=actor(container))
        print_known(task.task_id, status=task.status, as_json=arguments.json)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def _stdin_text() -> str:
    if sys.stdin is None:
        raise Unusable("--payload: there is no stdin")
    # JSON is UTF-8, whatever the locale says; what is none is for the checks of a payload to refuse
    file = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if file is None else file.read().decode(errors="surrogateescape")


def _row(task: TaskBody) -> tuple[object, ...]:
    attempt = f"{task.attempt}/{task.max_attempts}"
    return (task.task_id, task.task_type, task.queue, task.priority, task.status, attempt, task.created_at)


def _print_submitted(submitted: Submitted, *, as_json: bool) -> Exit:
    status = None if submitted.task is None else submitted.task.status
    print_known(submitted.task_id, status=status, as_json=as_json, duplicate=submitted.duplicate)
    return Exit.DONE
