"""What commands print on stdout: tables for people, one JSON document for programs."""

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from dtq.domain.text import clean
from dtq.entrypoints.views import TaskBody, TaskList

_WIDE: Final = 250
"""The width where no terminal sets one: nothing is cut that a program may read."""

_COLORS: Final = {
    "succeeded": "green",
    "failed": "red",
    "dead_lettered": "red",
    "running": "cyan",
    "retrying": "yellow",
}


def print_json(body: object) -> None:
    """Print *body* as one JSON document."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(body)).decode() + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """Print one line for people."""
    sys.stdout.write(clean(text, limit=2000) + "\n")
    sys.stdout.flush()


def print_task(body: TaskBody) -> None:
    """Print everything of a task as a table of two columns."""
    members = msgspec.json.decode(msgspec.json.encode(body), type=dict[str, msgspec.Raw])
    table = _table("", "", heading=False)
    for name, value in members.items():
        text = _plain(bytes(value).decode())
        if text != "null":
            table.add_row(name, _styled(name, text))
    _print(table)


def print_tasks(tasks: TaskList) -> None:
    """Print tasks as a table, the newest first."""
    table = _table("task", "type", "queue", "priority", "status", "attempt", "created")
    for task in tasks.tasks:
        row: Sequence[str] = (
            task.task_id,
            task.task_type,
            task.queue,
            str(task.priority),
            task.status,
            f"{task.attempt}/{task.max_attempts}",
            _time(task.created_at),
        )
        table.add_row(*[_styled("status" if cell is task.status else "", cell) for cell in row])
    _print(table)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print what an operator should know, on stderr."""
    for warning in warnings:
        sys.stderr.write(f"dtq: warning: {clean(warning, limit=1000)}\n")


def _table(*headings: str, heading: bool = True) -> Any:
    # imported late: `--json` needs no tables
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=heading)
    for name in headings:
        table.add_column(name, overflow="fold", no_wrap=False)
    return table


def _styled(name: str, text: str) -> Any:
    from rich.text import Text

    style = _COLORS.get(text, "") if name == "status" else ""
    # never as markup: a stranger's text could paint or hide what follows
    return Text(clean(text, limit=100_000), style=style)


def _print(table: Any) -> None:
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDE)
    with console.capture() as captured:
        console.print(table)
    # rich fills each line with spaces up to the width
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    sys.stdout.flush()


def _plain(text: str) -> str:
    """Return a JSON string without its quotes, and any other JSON value as it is."""
    return msgspec.json.decode(text, type=str) if text.startswith('"') else text


def _time(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")
