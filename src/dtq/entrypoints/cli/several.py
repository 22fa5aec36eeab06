"""An act on several tasks: each gets an answer of its own, and the first refusal decides how the command ends."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from dtq.domain.errors import DtqError, is_outage
from dtq.entrypoints.cli.exits import Exit, exit_of, lines_of, members_of, print_error
from dtq.entrypoints.cli.output import print_answer, print_json_line


class Done(Struct, frozen=True, kw_only=True):
    """What became of one task: for programs, and for people."""

    body: Mapping[str, object]
    line: str


async def do_each(task_ids: Sequence[str], act: Callable[[str], Awaitable[Done]], *, as_json: bool, away: str) -> Exit:
    """Do *act* with one task after the other, and print of each how that went, at once.

    One that is refused does not keep the others from being done; a broker that is away does. What cuts it off is raised
    once it is told how far it came. Raises what is wrong with an only one.

    *away* says what a broker that cannot be reached is, and how it was found.
    """
    if len(task_ids) == 1:
        done = await act(task_ids[0])
        print_answer(done.body, line=done.line, as_json=as_json)
        return Exit.DONE
    ended = Exit.DONE
    for number, task_id in enumerate(task_ids, start=1):
        rest = task_ids[number:]
        with _told_if_cut_off(f"{task_id}: cut off; it may or may not have been done", rest=rest):
            answer = await _answer(task_id, act)
        # the answer that could not be written is repeated with the reason
        with _told_if_cut_off(f"cut off after {task_id}", rest=rest):
            if isinstance(answer, Done):
                _done(answer, as_json=as_json)
            else:
                _refused(task_id, answer, as_json=as_json, away=away)
        if isinstance(answer, DtqError):
            ended = ended or exit_of(answer)
        if isinstance(answer, DtqError) and is_outage(answer):
            _stopped(rest)
            break
    return ended


async def _answer(task_id: str, act: Callable[[str], Awaitable[Done]]) -> Done | DtqError:
    try:
        return await act(task_id)
    except DtqError as error:
        return error


@contextmanager
def _told_if_cut_off(where: str, *, rest: Sequence[str]) -> Iterator[None]:
    """Say *where* Ctrl-C, SIGTERM or a full disk ended it all, and what was not tried."""
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if not is_whole:
            print_error(f"dtq: {where}")
            _stopped(rest)


def _done(done: Done, *, as_json: bool) -> None:
    if as_json:
        print_json_line(done.body)
    else:
        print_answer(done.body, line=done.line, as_json=False)


def _refused(task_id: str, error: DtqError, *, as_json: bool, away: str) -> None:
    if as_json:
        print_json_line({"task_id": task_id, **members_of(error, away=away)})
        return
    for line in lines_of(error, away=away):
        print_error(f"dtq: {line}" if task_id in line else f"dtq: {task_id}: {line}")


def _stopped(rest: Sequence[str]) -> None:
    if rest:
        print_error(f"dtq: not tried any more: {len(rest)}, from {rest[0]} on")
