"""The `dtq` command: one module for each group of commands, the same services as the API."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Final

from dtq import __version__
from dtq.domain.errors import DtqError
from dtq.entrypoints.cli import (
    completion,
    dead_letters,
    doctor,
    exits,
    explain,
    overview,
    queues,
    servers,
    tasks,
    watch,
)
from dtq.entrypoints.cli.exits import AWAY, Exit, Unusable, print_error, report
from dtq.entrypoints.cli.parsers import FORMATTER, Parser, more
from dtq.entrypoints.cli.session import Terminated
from dtq.entrypoints.cli.streams import ReaderGone, Unwritten, finish, prepare
from dtq.entrypoints.config import SettingsError
from dtq.entrypoints.modules import TaskModuleError

_EPILOG: Final = f"""{more("dtq ")}

to try it, in an empty folder:
  dtq dev                         a Valkey, the API and a worker with demo tasks; leave it running, and
                                  in another terminal, in the same folder:
  dtq submit --type echo_task --payload '{{"hello": "world"}}' --wait

when a task has failed for good, it is a dead letter:
  dtq dlq list                    all of them, each with its last error
  dtq get TASK_ID                 one of them, with each attempt
                                  now remove the cause, and:
  dtq retry-dlq TASK_ID --wait    let it run again
  dtq discard-dlq TASK_ID         or give it up

The broker is what DTQ_REDIS_URL says, or else that of a `dtq dev` that runs in this folder (by default
redis://localhost:6379/0). Task types are known by DTQ_TASK_MODULES or --tasks, to worker and `dtq submit` alike.

{exits.HELP}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    prepare()
    try:
        return _run(_understood(argv))
    finally:
        finish()


def _understood(argv: Sequence[str] | None) -> Namespace:
    arguments, left = parser().parse_known_args(argv)
    if left:
        # parse_args would show the usage of dtq itself, which does not help who is so far
        arguments.refuse(f"unrecognized arguments: {' '.join(left)}")
    return arguments


def _run(arguments: Namespace) -> int:
    run: Callable[[Namespace], int] = arguments.run
    try:
        return run(arguments)
    except SettingsError as error:
        for fault in error.faults:
            print_error(f"dtq: {fault}")
        return Exit.USAGE
    except (TaskModuleError, Unusable) as error:
        print_error(f"dtq: {error}")
        return Exit.USAGE
    except DtqError as error:
        as_json = getattr(arguments, "json", False)
        away, task_types = getattr(arguments, "away", AWAY), getattr(arguments, "task_types", ())
        return report(error, as_json=as_json, away=away, task_types=task_types)
    except ReaderGone:
        return Exit.DONE
    except (Unwritten, OSError) as error:
        # what the broker's connections raise is translated: this is a file of ours
        print_error(f"dtq: {error}")
        return Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Terminated:
        return Exit.TERMINATED


def parser() -> ArgumentParser:
    """Return what understands the command line."""
    top = Parser(
        prog="dtq",
        description="A distributed task queue on Redis Streams. Settings are DTQ_ variables.",
        epilog=_EPILOG,
        formatter_class=FORMATTER,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"dtq {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND", title="commands")
    tasks.add_to(commands)
    explain.add_to(commands)
    dead_letters.add_to(commands)
    queues.add_to(commands)
    overview.add_to(commands)
    watch.add_to(commands)
    doctor.add_to(commands)
    servers.add_to(commands)
    completion.add_to(commands, parser_of_all=parser)
    return top
