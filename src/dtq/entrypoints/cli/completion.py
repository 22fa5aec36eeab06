"""dtq completion: what a shell needs to complete commands and options."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dtq.entrypoints.cli.exits import Exit
from dtq.entrypoints.cli.parsers import add_command
from dtq.entrypoints.cli.streams import write

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

SHELLS: Final = ("bash", "zsh", "fish")

_NOTES: Final = """For good, after a look at what it prints:
  bash   dtq completion bash > ~/.local/share/bash-completion/completions/dtq
  zsh    dtq completion zsh > ~/.zfunc/_dtq      (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)
  fish   dtq completion fish > ~/.config/fish/completions/dtq.fish"""


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

    write(shtab.complete(arguments.parser_of_all(), arguments.shell) + "\n")
    return Exit.DONE
