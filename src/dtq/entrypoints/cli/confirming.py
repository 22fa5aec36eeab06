"""Asking before something is lost."""

import sys

from dtq.entrypoints.cli.exits import Unusable
from dtq.entrypoints.cli.streams import write_error


def check_confirmable(*, yes: bool) -> None:
    """Return where ``--yes`` was said or somebody can be asked. Raises Unusable."""
    # a process that was started without one has no stdin at all
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise Unusable("this cannot be undone, and there is no terminal to ask at: nothing was done; say --yes")


def confirm(question: str) -> None:
    """Ask at the terminal, and return where the answer is yes. Raises Unusable."""
    write_error(f"{question} [y/N] ")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Unusable("nothing was done")
