"""How commands end: exit codes, and errors on stderr."""

from collections.abc import Collection, Mapping
from enum import IntEnum
from typing import Final

import msgspec

from dtq.application.requests import MAX_LIMIT
from dtq.domain.admission import TASK_ID_PATTERN
from dtq.domain.errors import (
    BrokerUnavailable,
    DtqError,
    FieldProblem,
    IdempotencyInProgress,
    OutcomeUnknown,
    RecordUnreadable,
    StepStopped,
    TaskNotFound,
    UnknownTaskType,
)
from dtq.domain.text import clean
from dtq.entrypoints.cli.streams import write_error, write_error_json


class Unusable(Exception):
    """A command that cannot be carried out as it was given; nothing was done."""


class Exit(IntEnum):
    """What a command's exit code means; a worker has those of dtq.application.settings too."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    REJECTED = 5
    FULL = 6
    ENDED = 7
    UNSUCCESSFUL = 8
    STILL_RUNNING = 9
    UNWELL = 10
    INTERRUPTED = 130
    TERMINATED = 143


EXIT_OF: Final[Mapping[str, Exit]] = {
    "INVALID_TASK": Exit.REJECTED,
    "UNKNOWN_TASK_TYPE": Exit.REJECTED,
    "PAYLOAD_TOO_LARGE": Exit.REJECTED,
    "INVALID_REQUEST": Exit.USAGE,
    "UNSUITABLE_BROKER": Exit.USAGE,
    "WORKER_ID_IN_USE": Exit.USAGE,
    "TASK_NOT_FOUND": Exit.NOT_FOUND,
    "QUEUE_NOT_FOUND": Exit.NOT_FOUND,
    "WORKER_NOT_FOUND": Exit.NOT_FOUND,
    "NOT_IN_DLQ": Exit.NOT_FOUND,
    "IDEMPOTENCY_IN_PROGRESS": Exit.CONFLICT,
    "CANCEL_REQUESTED": Exit.CONFLICT,
    "NOT_DEAD_LETTERED": Exit.CONFLICT,
    "QUEUE_FULL": Exit.FULL,
    "TASK_TERMINAL": Exit.ENDED,
    "DLQ_DISCARDED": Exit.ENDED,
    "RECORD_UNREADABLE": Exit.FAILED,
    "BROKER_UNAVAILABLE": Exit.FAILED,
}

HELP: Final = """exit codes:
  0 done (a duplicate too)     1 broker or internal error   2 usage, settings, set-up, or not confirmed
  3 not found                  4 conflict: running, in progress, not a dead letter
  5 rejected: invalid, too large, unknown type (--file: at least one line)
  6 queue full
  7 already ended or discarded
  8 --wait: the task ended without success                  9 --wait: it still ran at the limit
  10 doctor: something is wrong, or is left after --repair
  70 worker: hung and gave up  75 worker: ended with work left, start it again
  130 interrupted by Ctrl-C    143 ended by SIGTERM"""

AWAY: Final = "the broker is unavailable"
"""What is said of a broker that cannot be reached, where nobody knows how it was found."""

WHERE_HANDLERS_ARE: Final = "DTQ_TASK_MODULES or --tasks names the modules that have handlers, dtq.demo for instance"

MOST_TYPES: Final = 12
"""How many of the task types that are known are named."""


def report(error: DtqError, *, as_json: bool, away: str = AWAY, task_types: Collection[str] = ()) -> Exit:
    """Print *error* on stderr and return the exit code that goes with it.

    *away* says what a broker that cannot be reached is, and how it was found; *task_types* are those known here.
    """
    if as_json:
        write_error_json(msgspec.json.encode(members_of(error, away=away)))
    else:
        hint = _which_types(task_types) if isinstance(error, UnknownTaskType) else ""
        for line in lines_of(error, away=away):
            print_error(f"dtq: {line}{hint}")
    return exit_of(error)


def exit_of(error: DtqError) -> Exit:
    """Return the exit code that goes with *error*."""
    return EXIT_OF.get(error.code, Exit.FAILED)


def members_of(error: DtqError, *, away: str = AWAY) -> dict[str, object]:
    """Return what programs are told of *error*: the members that an answer of the API has too."""
    members: dict[str, object] = {"code": error.code, "detail": clean(_detail(error, away))}
    problems = _problems(error)
    if problems:
        members["errors"] = [{"field": clean(one.field), "problem": clean(one.problem)} for one in problems]
    if isinstance(error, IdempotencyInProgress):
        members["task_id"] = error.task_id
    return members


def lines_of(error: DtqError, *, away: str = AWAY) -> list[str]:
    """Return what people are told of *error*: a line for each field that is at fault, or one."""
    return [f"{one.field}: {one.problem}" for one in _problems(error)] or [_detail(error, away)]


def print_error(text: str) -> None:
    """Print one line on stderr, without control characters."""
    write_error(f"{clean(text, limit=2000)}\n")


def tell_of_limit(shown: int, *, limit: int, of: int | None = None) -> None:
    """Say on stderr that a list which looks whole is not, or may not be where it is not known *of* how many it is."""
    if of is None:
        is_cut, told = shown == limit, f"the list ends at its limit of {limit}, and there may be more"
    else:
        is_cut, told = shown < of, f"these are the newest {shown} of {of}"
    if is_cut:
        print_error(f"dtq: {told}; --limit N shows up to {MAX_LIMIT}")


def _which_types(known: Collection[str]) -> str:
    named = sorted(known)[:MOST_TYPES]
    others = f" and {len(known) - len(named)} others" if len(known) > len(named) else ""
    here = f"known here: {', '.join(named)}{others}" if named else "none is known here"
    return f"; {here}; {WHERE_HANDLERS_ARE}; `dtq workers` shows the types that workers know"


def _problems(error: DtqError) -> tuple[FieldProblem, ...]:
    return getattr(error, "problems", ())


def _detail(error: DtqError, away: str) -> str:
    match error:
        case StepStopped():
            return f"the broker stopped half-way, so the request may or may not have been carried out ({error})"
        case OutcomeUnknown():
            return f"the broker did not answer in time, so the request may or may not have been carried out ({error})"
        case RecordUnreadable():
            return f"{error}; {error.advice}"
        case BrokerUnavailable():
            return f"{away} ({error})"
        case TaskNotFound():
            shape = "" if TASK_ID_PATTERN.fullmatch(error.task_id) else ": an id has 32 hex digits, 0-9 and a-f"
            return f"no task {error.task_id!r}{shape}"
        case _:
            return str(error)
