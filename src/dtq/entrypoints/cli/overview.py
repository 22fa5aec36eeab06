"""dtq workers, audit: who works, and who did what."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dtq.entrypoints.cli.exits import Exit, tell_of_limit
from dtq.entrypoints.cli.output import print_json, print_rows
from dtq.entrypoints.cli.parsers import add_command, add_json, add_limit
from dtq.entrypoints.cli.session import container_of, with_broker
from dtq.entrypoints.container import Container
from dtq.entrypoints.operator_views import AuditBody, WorkerList, audit_list, worker_body

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

_LAST_HEADINGS: Final = ("last heartbeat", "task types")
_TYPES_WIDTH: Final = 60


def add_to(commands: "Commands") -> None:
    """Add the commands that only look."""
    parser = add_command(
        commands,
        "workers",
        does="list workers with what their last heartbeats say",
        run=show_workers,
        examples=["dtq workers"],
    )
    add_limit(parser)
    add_json(parser)
    parser = add_command(
        commands,
        "audit",
        does="list what operators did or were refused, the last first",
        run=show_audit,
        examples=["dtq audit --limit 20"],
    )
    add_limit(parser)
    add_json(parser)


def show_workers(arguments: Namespace) -> Exit:
    """List workers."""

    async def use(container: Container) -> Exit:
        workers = [worker_body(view) for view in await container.workers().all(limit=arguments.limit)]
        if arguments.json:
            print_json(WorkerList(workers=workers))
            return Exit.DONE
        headings = ("worker", "status", "queue", "active", "processed", "failed", "retried", "host", *_LAST_HEADINGS)
        rows = [
            (
                one.worker_id,
                one.status,
                one.queue,
                None if one.active_tasks is None else f"{one.active_tasks}/{one.concurrency}",
                one.tasks_processed,
                one.tasks_failed,
                one.tasks_retried,
                one.hostname,
                one.last_heartbeat,
                _shortened(one.task_types),
            )
            for one in workers
        ]
        print_rows(headings, rows, empty="no workers")
        tell_of_limit(len(workers), limit=arguments.limit)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def _shortened(task_types: Sequence[str]) -> str:
    """Name as many task types as there is room for, and say how many more there are."""
    named = list(task_types)
    while len(named) > 1 and len(", ".join(named)) > _TYPES_WIDTH:
        named.pop()
    left = len(task_types) - len(named)
    return ", ".join([*named, *([f"+{left}"] if left else [])])


def _of(act: AuditBody) -> str | None:
    return " ".join(part for part in (act.task_id or act.queue, act.subject) if part) or None


def show_audit(arguments: Namespace) -> Exit:
    """List acts of operators."""

    async def use(container: Container) -> Exit:
        trail = audit_list(await container.trail().recent(limit=arguments.limit))
        if arguments.json:
            print_json(trail)
            return Exit.DONE
        headings = ("time", "actor", "action", "of", "count", "outcome", "request")
        rows = [
            (one.ts, one.actor, one.action, _of(one), one.count, one.outcome, one.request_id) for one in trail.entries
        ]
        print_rows(headings, rows, empty="nothing yet")
        return Exit.DONE

    return with_broker(container_of(arguments), use)
