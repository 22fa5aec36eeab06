"""dtq queues, queue pause, queue resume, queue stats, purge."""

import asyncio
from argparse import Namespace
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.errors import BrokerUnavailable
from dtq.entrypoints.cli.confirming import check_confirmable, confirm
from dtq.entrypoints.cli.exits import Exit, print_error, tell_of_limit
from dtq.entrypoints.cli.output import (
    members_of,
    plain,
    print_answer,
    print_json,
    print_line,
    print_members,
    print_rows,
)
from dtq.entrypoints.cli.parsers import add_command, add_group, add_json, add_limit, add_yes
from dtq.entrypoints.cli.progress import progress
from dtq.entrypoints.cli.session import actor, container_of, with_broker
from dtq.entrypoints.cli.unserved import unused_words
from dtq.entrypoints.container import Container
from dtq.entrypoints.operator_views import QueueList, queue_body, queue_detail

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

_FIGURES = """depth counts tasks that wait or run; pending those that a worker has read; retry_scheduled those that
wait for their time. Dead letters, dlq_depth with --json, are those of all queues. workers_active is as of the
last heartbeats, and so approximate; the others are exact."""

_LABELS: Final = {"dlq_depth": "dead letters (all queues)"}

_ELSEWHERE: Final = "`dtq queues` lists all queues, and `dtq purge --queue QUEUE` empties one"


def add_to(commands: "Commands") -> None:
    """Add the commands of queues."""
    parser = add_command(
        commands, "queues", does="list queues with their figures", run=show_all, examples=["dtq queues"]
    )
    add_limit(parser)
    add_json(parser)
    _add_group(commands)
    parser = add_command(
        commands,
        "purge",
        does="cancel all tasks that wait in a queue and that no worker has read",
        run=purge,
        notes="It asks first. Tasks that run, that are delayed, or that wait for a retry stay.",
        examples=["dtq purge --queue mail", "dtq purge --queue mail --yes"],
    )
    parser.add_argument("--queue", required=True, metavar="QUEUE", help="its name")
    add_yes(parser)
    add_json(parser)


def _add_group(commands: "Commands") -> None:
    group = add_group(commands, "queue", does="pause a queue, resume it, or show its figures", elsewhere=_ELSEWHERE)
    parser = add_command(
        group,
        "pause",
        does="let nothing new start in a queue; what runs goes on, and tasks are still taken in",
        run=pause,
        examples=["dtq queue pause mail"],
    )
    parser.add_argument("queue", metavar="QUEUE", help="its name")
    add_json(parser)
    parser = add_command(
        group, "resume", does="let work start again in a queue", run=resume, examples=["dtq queue resume mail"]
    )
    parser.add_argument("queue", metavar="QUEUE", help="its name")
    add_json(parser)
    parser = add_command(
        group,
        "stats",
        does="show the figures of a queue",
        run=show,
        notes=_FIGURES,
        examples=["dtq queue stats mail"],
    )
    parser.add_argument(
        "queue", nargs="?", default=DEFAULT_QUEUE, metavar="QUEUE", help=f"its name (default: {DEFAULT_QUEUE})"
    )
    add_json(parser)


def show_all(arguments: Namespace) -> Exit:
    """List queues."""

    async def use(container: Container) -> Exit:
        queues = [queue_body(stats) for stats in await container.queues().all(limit=arguments.limit)]
        if arguments.json:
            print_json(QueueList(queues=queues))
        else:
            headings = ("queue", "depth", "pending", "paused", "retry_scheduled")
            print_rows(headings, [tuple(asdict(queue).values()) for queue in queues], empty="no queues")
            tell_of_limit(len(queues), limit=arguments.limit)
            number = await container.dead_letters().count()
            if number:
                print_line(f"{number} dead letter{'s' if number > 1 else ''}: dtq dlq list")
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def show(arguments: Namespace) -> Exit:
    """Show everything about a queue."""

    async def use(container: Container) -> Exit:
        detail = queue_detail(await container.queues().detail(arguments.queue))
        if arguments.json:
            print_json(detail)
        else:
            rows = {name: plain(value) for name, value in members_of(detail).items()}
            print_members((_LABELS.get(name, name), text) for name, text in rows.items())
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def pause(arguments: Namespace) -> Exit:
    """Pause a queue."""

    async def use(container: Container) -> Exit:
        await container.queues().pause(arguments.queue, by=actor(container))
        return await _switched(arguments, container, paused=True)

    return with_broker(container_of(arguments), use)


def resume(arguments: Namespace) -> Exit:
    """Resume a queue."""

    async def use(container: Container) -> Exit:
        await container.queues().resume(arguments.queue, by=actor(container))
        return await _switched(arguments, container, paused=False)

    return with_broker(container_of(arguments), use)


def purge(arguments: Namespace) -> Exit:
    """Cancel what waits in a queue."""
    check_confirmable(yes=arguments.yes)

    async def question(container: Container) -> str:
        return f"cancel all tasks that wait in queue {arguments.queue} ({await _waiting(container, arguments.queue)})?"

    async def use(container: Container) -> Exit:
        done = 0

        def count(purged: int) -> None:
            nonlocal done
            done = purged
            advance(purged)

        with progress("purging", total=await _waiting(container, arguments.queue)) as advance:
            try:
                purged = await container.queues().purge(arguments.queue, by=actor(container), on_progress=count)
            except (BrokerUnavailable, asyncio.CancelledError):
                print_error(f"dtq: cut off when {done} tasks of {arguments.queue} were cancelled, or a few more")
                raise
        body = {"queue": arguments.queue, "purged": purged}
        print_answer(body, line=f"tasks of {arguments.queue} cancelled: {purged}", as_json=arguments.json)
        if not purged:
            await _tell_of_unused(arguments.queue, container)
        return Exit.DONE

    container = container_of(arguments)
    if not arguments.yes:
        confirm(container, question)
    return with_broker(container, use)


async def _waiting(container: Container, queue: str) -> int:
    stats = await container.queues().stats(queue)
    return stats.depth - stats.pending


async def _tell_of_unused(queue: str, container: Container) -> None:
    words = await unused_words(queue, container)
    if words is not None:
        print_error(f"dtq: {words}")


async def _switched(arguments: Namespace, container: Container, *, paused: bool) -> Exit:
    line = f"{arguments.queue} {'paused' if paused else 'resumed'}"
    print_answer({"queue": arguments.queue, "paused": paused}, line=line, as_json=arguments.json)
    await _tell_of_unused(arguments.queue, container)
    return Exit.DONE
