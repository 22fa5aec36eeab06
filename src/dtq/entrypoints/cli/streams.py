"""stdin, stdout and stderr as this process was given them: closed, cut off, full, or unable to say every character."""

import contextlib
import io
import os
import re
import sys
from typing import Final, TextIO

from dtq.domain.text import clean

_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_MAX_REPEATED: Final = 500
"""How much of what could not be written is repeated elsewhere."""


class ReaderGone(Exception):
    """Nobody reads stdout any more."""


class Unwritten(Exception):
    """What a command did could not be told on stdout; the message has the reason and the beginning of it."""


def prepare() -> None:
    """Let reading and writing be safe: what is closed leads nowhere, and no character or byte raises.

    Characters that an encoding lacks are escaped; bytes that are no text are read as lone surrogates.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # the lowest free number is this one: no connection may come to be what others print on
            nowhere = os.open(os.devnull, os.O_RDWR)
            # so that children have it too
            os.set_inheritable(nowhere, True)  # noqa: FBT003 - it has no name for it
    # never None again: print would take stdout for a missing stderr
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        # whoever calls this within a program of theirs may have closed it, or read a part of it
        with contextlib.suppress(ValueError):
            sys.stdin.reconfigure(errors="surrogateescape")


def finish() -> None:
    """Write what is left, so that Python does not complain when it closes the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            leave(stream)


def write(text: str, *, while_read: bool = False) -> None:
    """Print *text* on stdout. Raises Unwritten where that fails, on a full disk for instance.

    Where its reader is gone it goes nowhere: what a command was told to do is done all the same. *while_read* raises
    ReaderGone then, for what goes on only as long as somebody looks.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError as error:
        leave(sys.stdout)
        if while_read:
            raise ReaderGone from error
    except OSError as error:
        leave(sys.stdout)
        message = f"stdout: {error}; the command was carried out, and this could not be written: "
        raise Unwritten(message + clean(text.strip(), limit=_MAX_REPEATED)) from error


def write_json(document: bytes, *, while_read: bool = False) -> None:
    """Print a JSON document on stdout; what the encoding of stdout lacks is escaped as JSON has it."""
    write(f"{_json_text(document, encoding=sys.stdout.encoding)}\n", while_read=while_read)


def write_error(text: str) -> None:
    """Print *text* on stderr; where that cannot be written, nowhere."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        leave(sys.stderr)


def write_error_json(document: bytes) -> None:
    """Print a JSON document on stderr, whole, escaped as write_json does; where that cannot be written, nowhere."""
    write_error(f"{_json_text(document, encoding=sys.stderr.encoding)}\n")


def leave(stream: TextIO) -> None:
    """Let what is still to be written to *stream* go nowhere: its reader is gone, or its disk is full."""
    # Python would complain once more when it closes the stream
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it stays open as long as the process lives


def _json_text(document: bytes, *, encoding: str | None) -> str:
    text = document.decode()
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return _BEYOND_ASCII.sub(_escaped, text)
    return text


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
