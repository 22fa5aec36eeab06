"""dtq dlq list, retry-dlq, discard-dlq, purge-dlq: what was given up, and what becomes of it."""

from argparse import Namespace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from dtq.entrypoints.cli.confirming import check_confirmable, confirm
from dtq.entrypoints.cli.exits import Exit
from dtq.entrypoints.cli.following import add_wait, follow, print_known
from dtq.entrypoints.cli.output import print_answer, print_json, print_rows
from dtq.entrypoints.cli.parsers import add_command, add_group, add_json, add_limit, add_task_id, add_yes
from dtq.entrypoints.cli.session import actor, container_of, with_broker
from dtq.entrypoints.container import Container
from dtq.entrypoints.operator_views import DeadLetterBody, DeadLetterList, dead_letter_body

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

_ELSEWHERE: Final = (
    "`dtq dlq list` lists them; `dtq retry-dlq TASK_ID` lets one run again, `dtq discard-dlq TASK_ID` gives it up, "
    "`dtq purge-dlq` all of them"
)


def add_to(commands: "Commands") -> None:
    """Add the commands of dead letters."""
    group = add_group(commands, "dlq", does="look at dead letters: tasks that failed for good", elsewhere=_ELSEWHERE)
    parser = add_command(
        group,
        "list",
        does="list dead letters with their last errors, the newest first",
        run=show_recent,
        notes="`dtq get TASK_ID` shows the errors of all attempts.",
        examples=["dtq dlq list --limit 10"],
    )
    add_limit(parser)
    add_json(parser)
    _add_acts(commands)


def _add_acts(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "retry-dlq",
        does="let a dead letter run again, with the same payload and all its attempts",
        run=retry,
        notes="Remove the cause of its failure first, and start workers anew whose code you changed.",
        examples=["dtq retry-dlq TASK_ID --wait"],
    )
    add_task_id(parser)
    add_wait(parser)
    add_json(parser)
    parser = add_command(
        commands,
        "discard-dlq",
        does="take a dead letter out of the list for good; its task stays, dead-lettered",
        run=discard,
        examples=["dtq discard-dlq TASK_ID"],
    )
    add_task_id(parser)
    add_json(parser)
    parser = add_command(
        commands,
        "purge-dlq",
        does="discard the dead letters of all queues",
        run=purge,
        notes="It asks first. Their tasks stay, dead-lettered.",
        examples=["dtq purge-dlq", "dtq purge-dlq --yes"],
    )
    add_yes(parser)
    add_json(parser)


def show_recent(arguments: Namespace) -> Exit:
    """List dead letters."""

    async def use(container: Container) -> Exit:
        service = container.dead_letters()
        letters = [dead_letter_body(letter) for letter in await service.recent(limit=arguments.limit)]
        if arguments.json:
            print_json(DeadLetterList(dead_letters=letters, dlq_depth=await service.count()))
        else:
            headings = ("task", "type", "queue", "attempts", "failed", "error")
            print_rows(headings, [_row(letter) for letter in letters], empty="no dead letters")
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def retry(arguments: Namespace) -> Exit:
    """Requeue a dead letter, and follow it where that is asked."""

    async def use(container: Container) -> Exit:
        task = await container.dead_letters().requeue(arguments.task_id, by=actor(container))
        if arguments.wait is not None:
            limit = timedelta(seconds=arguments.wait)
            return await follow(task.task_id, container, limit=limit, as_json=arguments.json, status=task.status)
        print_known(task.task_id, status=task.status, as_json=arguments.json)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def discard(arguments: Namespace) -> Exit:
    """Discard a dead letter."""

    async def use(container: Container) -> Exit:
        task = await container.dead_letters().discard(arguments.task_id, by=actor(container))
        body = {"task_id": task.task_id, "status": task.status, "discarded": task.discarded}
        print_answer(body, line=f"{task.task_id} discarded", as_json=arguments.json)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def purge(arguments: Namespace) -> Exit:
    """Discard all dead letters."""
    check_confirmable(yes=arguments.yes)

    async def question(container: Container) -> str:
        return f"discard all dead letters ({await container.dead_letters().count()})?"

    async def use(container: Container) -> Exit:
        purged = await container.dead_letters().purge(by=actor(container))
        print_answer({"purged": purged}, line=f"dead letters discarded: {purged}", as_json=arguments.json)
        return Exit.DONE

    container = container_of(arguments)
    if not arguments.yes:
        confirm(container, question)
    return with_broker(container, use)


def _row(letter: DeadLetterBody) -> tuple[object, ...]:
    error = f"{letter.last_error_class}: {letter.last_error}" if not letter.malformed else letter.last_error
    attempts = f"{letter.attempts_made}/{letter.max_attempts}"
    return (letter.task_id, letter.task_type, letter.original_queue, attempts, letter.failed_at, error)
