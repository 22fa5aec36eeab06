"""dtq watch: events as they happen."""

from argparse import Namespace
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from dtq.application.fan_out import FanOut
from dtq.application.fan_out_filter import EventFilter, event_filter
from dtq.application.fan_out_tap import Control, ControlKind, Ending, Message, Reason, TapClosed
from dtq.domain.events import Event, EventType
from dtq.entrypoints.cli.exits import Exit, print_error
from dtq.entrypoints.cli.numbers import positive
from dtq.entrypoints.cli.output import event_printer, print_json_line
from dtq.entrypoints.cli.parsers import Offered, add_command, add_json
from dtq.entrypoints.cli.session import container_of, with_broker
from dtq.entrypoints.container import Container

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

QUIET: Final = timedelta(seconds=10)

_NOTES: Final = f"""Types of events:
{fill(", ".join(EventType), width=100, initial_indent="  ", subsequent_indent="  ")}
A filter may be given several times: each event that has one of its values is shown. What happened before, or while
Redis was away, is not shown: `dtq get` and `dtq list` know it. Ctrl-C ends it, with 130."""


def add_to(commands: "Commands") -> None:
    """Add the command that watches."""
    parser = add_command(
        commands,
        "watch",
        does="show what happens to tasks, workers and queues while it happens",
        run=watch,
        notes=_NOTES,
        examples=["dtq watch --queue mail --type TASK_FAILED --type TASK_DEAD_LETTERED", "dtq watch --task TASK_ID"],
    )
    parser.add_argument("--queue", action="append", default=[], metavar="QUEUE", help="only events of this queue")
    parser.add_argument(
        "--type",
        action="append",
        default=[],
        choices=Offered(EventType),
        metavar="TYPE",
        help="only events of this type",
    )
    parser.add_argument("--task", action="append", default=[], metavar="TASK_ID", help="only events of this task")
    parser.add_argument("--count", type=positive, metavar="N", help="end, with 0, after so many events")
    add_json(parser, help="print each event as one JSON document, on one line")


def watch(arguments: Namespace) -> Exit:
    """Show events until somebody ends it."""
    named = [("queue", name) for name in arguments.queue]
    named += [("type", name) for name in arguments.type]
    named += [("task_id", name) for name in arguments.task]
    wanted = event_filter(named)

    async def use(container: Container) -> Exit:
        fan_out = container.fan_out()
        try:
            await show(fan_out, wanted, count=arguments.count, as_json=arguments.json)
        finally:
            await fan_out.closed()
        return Exit.DONE

    return with_broker(container_of(arguments), use)


async def show(fan_out: FanOut, wanted: EventFilter, *, count: int | None, as_json: bool) -> None:
    """Print events that *wanted* admits: *count* of them, or all there will ever be."""
    left = count
    print_one = partial(print_json_line, while_read=True) if as_json else _for_people()
    while left is None or left > 0:
        with fan_out.listen(wanted, encode=_as_it_is) as tap:
            try:
                while left is None or left > 0:
                    for message in await tap.take(at_most=QUIET):
                        if isinstance(message, Control):
                            _print_control(message, as_json=as_json)
                        elif left != 0:
                            print_one(message)
                            left = None if left is None else left - 1
            except TapClosed as closed:
                if closed.ending is not Ending.OVERFLOW:
                    raise
                print_error("dtq: events came faster than they were printed; some are missing")


def _for_people() -> Callable[[Event], None]:
    print_event = event_printer()
    return lambda event: print_event(*_columns(event))


def _print_control(control: Control, *, as_json: bool) -> None:
    if control.control is ControlKind.HEARTBEAT:
        return
    if as_json:
        print_json_line(control, while_read=True)
        return
    match control:
        case Control(control=ControlKind.SUBSCRIBED):
            print_error("dtq: watching; Ctrl-C ends it")
        case Control(control=ControlKind.INTERRUPTED):
            print_error("dtq: the broker is away; what happens now is not seen")
        case Control(reason=Reason.SLOW_CLIENT, dropped=dropped):
            print_error(f"dtq: events came faster than they were printed; {dropped} are missing")
        case _:
            print_error("dtq: the broker is back; what happened meanwhile was not seen")


def _columns(event: Event) -> tuple[datetime, str, list[str]]:
    metadata = event.metadata or {}
    rest: list[Any] = [
        event.task_id,
        event.task_type,
        event.queue,
        None if event.attempt is None else f"attempt {event.attempt}",
        event.worker_id,
        *[f"{name}={str(value).lower()}" for name, value in metadata.items() if name != "queue"],
    ]
    return event.ts, event.type, [str(part) for part in rest if part is not None]


def _as_it_is(message: Message) -> Message:
    return message
