"""dtq completion: what a shell needs to complete commands and options."""

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dtq.entrypoints.cli.exits import Exit
from dtq.entrypoints.cli.parsers import add_command
from dtq.entrypoints.cli.streams import write

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

SHELLS: Final = ("bash", "zsh", "fish")

_FILES: Final = {
    "bash": "~/.local/share/bash-completion/completions/dtq",
    "zsh": "~/.zfunc/_dtq",
    "fish": "~/.config/fish/completions/dtq.fish",
}
"""Where each shell looks for what it is to complete."""

_BEFORE: Final = {"zsh": "with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc"}

_HEAD: Final = re.compile(r"^# Usage:\n(?:#.*\n)+", re.MULTILINE)
"""What shtab says of where its scripts go, which are other places."""


def _note(shell: str) -> str:
    before = f"      ({_BEFORE[shell]})" if shell in _BEFORE else ""
    return f"{shell:<4}   dtq completion {shell} > {_FILES[shell]}{before}"


_NOTES: Final = "\n".join(["For good, after a look at what it prints:", *[f"  {_note(shell)}" for shell in SHELLS]])


def add_to(commands: "Commands", *, parser_of_all: Callable[[], ArgumentParser]) -> None:
    """Add the command that prints completions of what *parser_of_all* makes."""
    parser = add_command(
        commands,
        "completion",
        does="print what a shell needs to complete commands and options",
        run=complete,
        notes=_NOTES,
        examples=['eval "$(dtq completion bash)"', "dtq completion fish | source"],
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
    parser.set_defaults(parser_of_all=parser_of_all)


def complete(arguments: Namespace) -> Exit:
    """Print a script for the shell."""
    # imported late: no other command needs it
    import shtab

    script = shtab.complete(arguments.parser_of_all(), arguments.shell)
    write(_HEAD.sub(lambda _: f"# For good:\n#   {_note(arguments.shell)}\n", script, count=1) + "\n")
    return Exit.DONE
