"""What commands print on stdout: tables for people, one JSON document for programs."""

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from io import StringIO
from typing import Any, Final

import msgspec

from dtq.domain.phrases import moment_text
from dtq.domain.text import clean
from dtq.entrypoints.cli.streams import write, write_error, write_json

_WIDE: Final = 250
"""The width of a table of two columns where no terminal sets one."""

_UNFOLDED: Final = 20_000
"""The width of other tables: each row is one line, which a terminal breaks as it likes, and ids stay whole."""

_NULL: Final = b"null"

_KIND_WIDTH: Final = 22
"""As wide as most types of events, so that what follows them stands in line."""

_STATUS_HEADINGS: Final = frozenset({"status", "outcome", "paused"})
_COLORS: Final = {
    "succeeded": "green",
    "ready": "green",
    "busy": "cyan",
    "running": "cyan",
    "retrying": "yellow",
    "started": "cyan",
    "retry_scheduled": "yellow",
    "draining": "yellow",
    "failed": "red",
    "dead_lettered": "red",
    "stale": "red",
}


def print_json(body: object) -> None:
    """Print *body* as one JSON document, to be read by people as well."""
    write_json(msgspec.json.format(msgspec.json.encode(body)))


def print_json_line(body: object, *, while_read: bool = False) -> None:
    """Print *body* as one JSON document of a line. Raises ReaderGone where that is asked by *while_read*."""
    write_json(msgspec.json.encode(body), while_read=while_read)


def print_line(text: str) -> None:
    """Print one line for people."""
    write(clean(text, limit=2000) + "\n")


def print_answer(body: object, *, line: str, as_json: bool) -> None:
    """Print what a command did: *body* for programs, or *line* for people."""
    if as_json:
        print_json(body)
    else:
        print_line(line)


def members_of(body: object) -> dict[str, bytes]:
    """Return the members of *body* that are not null, as JSON."""
    members = msgspec.json.decode(msgspec.json.encode(body), type=dict[str, msgspec.Raw])
    return {name: bytes(value) for name, value in members.items() if bytes(value) != _NULL}


def plain(value: bytes) -> str:
    """Return a JSON string without its quotes, and any other JSON value as it is."""
    text = value.decode()
    return msgspec.json.decode(text, type=str) if text.startswith('"') else text


def print_members(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and what they stand for as a table of two columns."""
    table = _table()
    for name in ("", ""):
        table.add_column(name, overflow="fold")
    for name, text in rows:
        table.add_row(name, _styled(name, text))
    _print(table, width=None if sys.stdout.isatty() else _WIDE)


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print a table with a line for each row, or where there is none the line *empty*."""
    table = _table(show_header=True)
    for name in headings:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*[_styled(name, shown(cell)) for name, cell in zip(headings, row, strict=True)])
    if table.row_count:
        _print(table, width=_UNFOLDED)
    else:
        print_line(empty)


def event_printer() -> Callable[[datetime, str, Sequence[str]], None]:
    """Return what prints one event on a line; its kind in color where a terminal shows it.

    It raises ReaderGone where nobody reads any more.
    """
    # made once: a busy broker has thousands of events a second
    console = _console(width=_UNFOLDED)

    def print_event(at: datetime, kind: str, rest: Sequence[str]) -> None:
        moment = at.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
        style = _COLORS.get(kind.removeprefix("TASK_").removeprefix("WORKER_").lower(), "")
        line = _text(f"{moment}  ", "")
        line.append_text(_text(f"{kind:<{_KIND_WIDTH}}", style))
        line.append_text(_text(f"  {'  '.join(rest)}", ""))
        with console.capture() as captured:
            console.print(line, soft_wrap=True)
        write(captured.get(), while_read=True)

    return print_event


def print_warnings(warnings: Iterable[str]) -> None:
    """Print what an operator should know, on stderr."""
    for warning in warnings:
        write_error(f"dtq: warning: {clean(warning, limit=1000)}\n")


def shown(cell: object) -> str:
    """Return what stands in a table for a value: moments to the second, nothing for None."""
    match cell:
        case None:
            return ""
        case datetime():
            return moment_text(cell)
        case bool():
            return "yes" if cell else "no"
        case _:
            return str(cell)


def _table(*, show_header: bool = False) -> Any:
    # imported late: `--json` needs no tables
    from rich.table import Table

    return Table(box=None, pad_edge=False, show_header=show_header, header_style="")


def _styled(heading: str, text: str) -> Any:
    return _text(text, _COLORS.get(text, "") if heading in _STATUS_HEADINGS else "")


def _text(text: str, style: str) -> Any:
    from rich.text import Text

    # never as markup: a stranger's text could paint or hide what follows
    return Text(clean(text, limit=100_000), style=style)


def _console(*, width: int | None) -> Any:
    from rich.console import Console

    # a file of its own: what it renders is ours to write, with what may go wrong then
    return Console(file=StringIO(), force_terminal=sys.stdout.isatty(), highlight=False, width=width)


def _print(table: Any, *, width: int | None) -> None:
    console = _console(width=width)
    with console.capture() as captured:
        console.print(table)
    # rich fills each line with spaces up to the width
    write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
