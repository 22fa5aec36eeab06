"""dtq dlq list, retry-dlq, discard-dlq, purge-dlq: what was given up, and what becomes of it."""

from argparse import Namespace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from dtq.application.requests import MAX_LIMIT, limit_problem, queue_problem, refuse
from dtq.entrypoints.cli.confirming import check_confirmable, confirm
from dtq.entrypoints.cli.exits import Exit, print_error, tell_of_limit
from dtq.entrypoints.cli.following import add_wait, follow
from dtq.entrypoints.cli.output import print_answer, print_json, print_rows
from dtq.entrypoints.cli.parsers import add_command, add_group, add_json, add_limit, add_task_ids, add_yes
from dtq.entrypoints.cli.session import actor, container_of, with_broker
from dtq.entrypoints.cli.several import Done, do_each
from dtq.entrypoints.container import Container
from dtq.entrypoints.operator_views import DeadLetterBody, DeadLetterList, dead_letter_body

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

_JSON: Final = "print one JSON document; of several tasks one for each, on one line"

_SEVERAL: Final = (
    """Of several tasks each is done or refused by itself, in this order; the exit code is that of the first refusal."""
)

_OF_LAST: Final = f"of the last {MAX_LIMIT} dead letters"

_LIST_NOTES: Final = """`dtq get TASK_ID` shows the errors of all attempts. All that are listed can be retried at once:
  dtq dlq list --queue mail --json | jq -r '.dead_letters[].task_id' | xargs -r dtq retry-dlq"""

_DETACHED: Final = "its idempotency key stands for it no more"

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
        notes=_LIST_NOTES,
        examples=[
            "dtq dlq list --limit 10",
            "dtq dlq list --queue mail --type send_order",
        ],
    )
    parser.add_argument("--queue", metavar="QUEUE", help=f"only those of this queue, {_OF_LAST}")
    parser.add_argument("--type", metavar="NAME", help=f"only those of this task type, {_OF_LAST}")
    add_limit(parser)
    add_json(parser)
    _add_acts(commands)


def _add_acts(commands: "Commands") -> None:
    parser = add_command(
        commands,
        "retry-dlq",
        does="let a dead letter run again, with the same payload and all its attempts",
        run=retry,
        notes=f"Remove the cause of its failure first, and start workers anew whose code you changed.\n{_SEVERAL}",
        examples=[
            "dtq retry-dlq TASK_ID --wait",
            "dtq retry-dlq TASK_ID TASK_ID",
        ],
    )
    add_task_ids(parser)
    add_wait(parser)
    add_json(parser, help=_JSON)
    parser = add_command(
        commands,
        "discard-dlq",
        does="take a dead letter out of the list for good; its task stays, dead-lettered",
        run=discard,
        notes=_SEVERAL,
        examples=["dtq discard-dlq TASK_ID", "dtq discard-dlq TASK_ID TASK_ID"],
    )
    add_task_ids(parser)
    add_json(parser, help=_JSON)
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
        refuse([limit_problem(arguments.limit), None if arguments.queue is None else queue_problem(arguments.queue)])
        is_narrowed = not (arguments.queue is None and arguments.type is None)
        read = await service.recent(limit=MAX_LIMIT if is_narrowed else arguments.limit)
        found = [letter for letter in map(dead_letter_body, read) if _is_wanted(letter, arguments)]
        letters, depth = found[: arguments.limit], await service.count()
        if arguments.json:
            print_json(DeadLetterList(dead_letters=letters, dlq_depth=depth))
        else:
            headings = ("task", "type", "queue", "attempts", "failed", "error")
            print_rows(headings, [_row(letter) for letter in letters], empty="no dead letters")
        if is_narrowed and len(read) < depth:
            print_error(f"dtq: only the newest {len(read)} of {depth} dead letters were looked at")
        tell_of_limit(len(letters), limit=arguments.limit, of=len(found) if is_narrowed else depth)
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def retry(arguments: Namespace) -> Exit:
    """Requeue dead letters, and follow an only one where that is asked."""
    if arguments.wait is not None and len(arguments.task_ids) > 1:
        arguments.refuse("--wait follows one task: name one, or look at each with `dtq get TASK_ID --wait`")

    async def use(container: Container) -> Exit:
        service, by = container.dead_letters(), actor(container)

        async def requeue(task_id: str) -> Done:
            requeued = await service.requeue(task_id, by=by)
            known = {"task_id": task_id, "status": requeued.task.status}
            if not requeued.is_detached:
                return Done(body=known, line=f"{task_id} {requeued.task.status}")
            return Done(
                body={**known, "idempotency_detached": True},
                line=f"{task_id} {requeued.task.status} ({_DETACHED})",
            )

        if arguments.wait is None:
            return await do_each(arguments.task_ids, requeue, as_json=arguments.json, away=arguments.away)
        requeued = await service.requeue(arguments.task_ids[0], by=by)
        task = requeued.task
        if requeued.is_detached:
            print_error(f"dtq: {task.task_id}: {_DETACHED}")
        limit = timedelta(seconds=arguments.wait)
        return await follow(task.task_id, container, limit=limit, as_json=arguments.json, status=task.status)

    return with_broker(container_of(arguments), use)


def discard(arguments: Namespace) -> Exit:
    """Discard dead letters."""

    async def use(container: Container) -> Exit:
        service, by = container.dead_letters(), actor(container)

        async def discard_one(task_id: str) -> Done:
            task = await service.discard(task_id, by=by)
            body = {"task_id": task.task_id, "status": task.status, "discarded": task.discarded}
            return Done(body=body, line=f"{task.task_id} discarded")

        return await do_each(arguments.task_ids, discard_one, as_json=arguments.json, away=arguments.away)

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


def _is_wanted(letter: DeadLetterBody, arguments: Namespace) -> bool:
    return arguments.queue in {None, letter.original_queue} and arguments.type in {None, letter.task_type}


def _row(letter: DeadLetterBody) -> tuple[object, ...]:
    error = f"{letter.last_error_class}: {letter.last_error}" if not letter.malformed else letter.last_error
    attempts = f"{letter.attempts_made}/{letter.max_attempts}"
    return (letter.task_id, letter.task_type, letter.original_queue, attempts, letter.failed_at, error)
