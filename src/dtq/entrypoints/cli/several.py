"""An act on several tasks: each gets an answer of its own, and the first refusal decides how the command ends."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from dtq.domain.errors import BrokerRefused, BrokerUnavailable, DtqError, StepStopped
from dtq.entrypoints.cli.exits import Exit, exit_of, members_of, print_error, report
from dtq.entrypoints.cli.output import print_answer, print_json_line


class Done(Struct, frozen=True, kw_only=True):
    """What became of one task: for programs, and for people."""

    body: Mapping[str, object]
    line: str


async def do_each(task_ids: Sequence[str], act: Callable[[str], Awaitable[Done]], *, as_json: bool) -> Exit:
    """Do *act* with one task after the other, and print of each how that went, at once.

    One that is refused does not keep the others from being done; a broker that is away does. Raises what is wrong with
    an only one.
    """
    if len(task_ids) == 1:
        done = await act(task_ids[0])
        print_answer(done.body, line=done.line, as_json=as_json)
        return Exit.DONE
    ended = Exit.DONE
    for number, task_id in enumerate(task_ids, start=1):
        try:
            done = await act(task_id)
        except DtqError as error:
            ended = ended or exit_of(error)
            _refused(task_id, error, as_json=as_json)
            if isinstance(error, BrokerUnavailable) and not isinstance(error, BrokerRefused | StepStopped):
                _stopped(task_ids[number:])
                break
        else:
            if as_json:
                print_json_line(done.body)
            else:
                print_answer(done.body, line=done.line, as_json=False)
    return ended


def _refused(task_id: str, error: DtqError, *, as_json: bool) -> None:
    if as_json:
        print_json_line({"task_id": task_id, **members_of(error)})
    else:
        report(error, as_json=False)


def _stopped(rest: Sequence[str]) -> None:
    if rest:
        print_error(f"dtq: not tried any more: {len(rest)}, from {rest[0]} on")
