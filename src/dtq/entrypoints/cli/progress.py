"""How far long work has come, on stderr, where a terminal shows it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Advance: TypeAlias = Callable[[int], None]


@contextmanager
def progress(what: str, *, total: int | None, quiet: bool = False) -> Iterator[Advance]:
    """Give a function that is told how much of *total* is done, and draw it; None stands for an end that nobody knows.

    Nothing is drawn where *quiet* or where stderr is no terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    # imported late: it takes a while, and most commands need no bar
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        drawn = bar.add_task(what, total=total)
        yield lambda done: bar.update(drawn, completed=done)
