"""The `dtq` command: one module for each group of commands, the same services as the API."""

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence

from dtq import __version__
from dtq.domain.errors import DtqError
from dtq.entrypoints.cli import exits, servers, tasks
from dtq.entrypoints.cli.exits import Exit, print_error, report
from dtq.entrypoints.config import SettingsError
from dtq.entrypoints.modules import TaskModuleError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = parser().parse_args(argv)
    run: Callable[[Namespace], int] = arguments.run
    try:
        return run(arguments)
    except SettingsError as error:
        for fault in error.faults:
            print_error(f"dtq: {fault}")
        return Exit.USAGE
    except TaskModuleError as error:
        print_error(f"dtq: {error}")
        return Exit.USAGE
    except DtqError as error:
        return report(error, as_json=getattr(arguments, "json", False))
    except BrokenPipeError:
        # whoever read our output has seen enough; Python would complain once more when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def parser() -> ArgumentParser:
    """Return what understands the command line."""
    top = ArgumentParser(
        prog="dtq",
        description="A distributed task queue on Redis Streams. Settings are DTQ_ variables.",
        epilog=exits.HELP,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"dtq {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    tasks.add_to(commands)
    servers.add_to(commands)
    return top
