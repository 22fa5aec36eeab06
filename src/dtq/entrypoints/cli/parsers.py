"""How commands are declared: each with a sentence on what it does, and with examples."""

import argparse
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from dtq.entrypoints.cli.numbers import integer

Run: TypeAlias = Callable[[Namespace], int]

FORMATTER: Final = partial(RawDescriptionHelpFormatter, max_help_position=32)
"""Leaves examples as they are written, and names of commands on the line of what they do."""


class Parser(ArgumentParser):
    """Understands a command; of a group, it also says where what may be looked for in it is instead."""

    elsewhere = ""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, after the usage of this command."""
        super().error(f"{message}{f'; {self.elsewhere}' if self.elsewhere else ''}")


class Offered:
    """Values that a shell offers. What else is typed is the command's to refuse, in the words that it always uses."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = tuple(values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, value: object) -> bool:
        return True


if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[Parser]  # noqa: SLF001 - argparse names it no other way


def add_command(
    commands: "Commands", name: str, *, does: str, run: Run, examples: Sequence[str], notes: str = ""
) -> ArgumentParser:
    """Declare a command that *run* carries out."""
    lines = "\n".join(f"  {example}" for example in examples)
    epilog = f"{'example' if len(examples) == 1 else 'examples'}:\n{lines}"
    parser = commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        epilog=f"{notes}\n\n{epilog}" if notes else epilog,
        formatter_class=FORMATTER,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, refuse=parser.error)
    return parser


def add_group(commands: "Commands", name: str, *, does: str, elsewhere: str = "") -> "Commands":
    """Declare a command that is made of others, and return where they go; *elsewhere* names what is not in it."""
    parser = commands.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}.",
        epilog="\n\n".join(part for part in (fill(elsewhere, 100), more(f"dtq {name} ")) if part),
        formatter_class=FORMATTER,
        allow_abbrev=False,
    )
    parser.elsewhere = elsewhere
    return parser.add_subparsers(required=True, metavar="COMMAND", title="commands")


def more(prefix: str) -> str:
    """Say where the help of single commands is."""
    return f"`{prefix}COMMAND --help` has the options of a command, and examples."


def add_json(parser: ArgumentParser, *, help: str = "print one JSON document") -> None:  # noqa: A002 - argparse's word
    """Offer ``--json``."""
    parser.add_argument("--json", action="store_true", help=help)


def add_task_id(parser: ArgumentParser) -> None:
    """Ask for a task's id."""
    parser.add_argument("task_id", metavar="TASK_ID", help="what submitting it printed, and what lists show")


def add_task_ids(parser: ArgumentParser) -> None:
    """Ask for the ids of tasks, one or more."""
    parser.add_argument("task_ids", nargs="+", metavar="TASK_ID", help="one id or more, as `dtq dlq list` shows them")


def add_limit(parser: ArgumentParser) -> None:
    """Offer ``--limit``."""
    parser.add_argument("--limit", type=integer, default=50, metavar="N", help="at most so many: 1..500 (default: 50)")


def add_yes(parser: ArgumentParser) -> None:
    """Offer ``--yes``."""
    parser.add_argument("--yes", action="store_true", help="do not ask; needed where no terminal is there to answer")


def add_tasks(parser: ArgumentParser) -> None:
    """Offer ``--tasks``."""
    parser.add_argument(
        "--tasks",
        metavar="MODULE,...",
        help="modules with task handlers (default: DTQ_TASK_MODULES); modules of the current folder can be named",
    )
