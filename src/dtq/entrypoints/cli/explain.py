"""dtq explain: why a task is not running."""

from argparse import Namespace
from typing import TYPE_CHECKING

from dtq.domain.reasons import Explanation
from dtq.entrypoints.cli.exits import Exit
from dtq.entrypoints.cli.output import print_json, print_line
from dtq.entrypoints.cli.parsers import add_command, add_json, add_task_id
from dtq.entrypoints.cli.session import container_of, with_broker
from dtq.entrypoints.container import Container
from dtq.entrypoints.explanation_views import explanation_body

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands


def add_to(commands: "Commands") -> None:
    """Add the command that explains."""
    parser = add_command(
        commands,
        "explain",
        does="say why a task is not running, what keeps it most first, and what happens next",
        run=explain,
        examples=["dtq explain TASK_ID"],
    )
    add_task_id(parser)
    add_json(parser)


def explain(arguments: Namespace) -> Exit:
    """Explain a task."""
    task_id: str = arguments.task_id

    async def use(container: Container) -> Exit:
        explanation = await container.explaining().explain(task_id)
        if arguments.json:
            print_json(explanation_body(task_id, explanation))
            return Exit.DONE
        print_line(_headline(task_id, explanation))
        for reason in explanation.reasons:
            print_line(f"- {reason.text}")
        print_line(f"next: {explanation.next.text}")
        return Exit.DONE

    return with_broker(container_of(arguments), use)


def _headline(task_id: str, explanation: Explanation) -> str:
    task = explanation.task
    if task is None:
        return f"task {task_id}"
    return f"task {task_id} ({task.task_type}, queue {task.queue}, priority {task.priority}) is {task.status}"
