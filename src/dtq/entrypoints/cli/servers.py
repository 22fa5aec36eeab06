"""dtq worker run, api run, dev: the commands that stay."""

import argparse
from argparse import ArgumentParser, Namespace

from dtq.entrypoints.cli.exits import Exit, print_error
from dtq.entrypoints.cli.session import add_tasks, loaded_of
from dtq.entrypoints.modules import load_registry


def add_to(commands: "argparse._SubParsersAction[ArgumentParser]") -> None:
    """Add the commands that run servers."""
    group = commands.add_parser("worker", help="run a worker", allow_abbrev=False)
    parser = group.add_subparsers(required=True, metavar="run").add_parser("run", allow_abbrev=False)
    parser.add_argument("--queue", dest="worker_queue", metavar="QUEUE", help="the queue that it serves")
    parser.add_argument("--concurrency", metavar="N", help="how many tasks it runs at once")
    add_tasks(parser)
    parser.set_defaults(run=run_worker)
    group = commands.add_parser("api", help="run the HTTP API", allow_abbrev=False)
    parser = group.add_subparsers(required=True, metavar="run").add_parser("run", allow_abbrev=False)
    parser.add_argument("--host", metavar="ADDRESS", help="where it listens (default: DTQ_API_HOST)")
    parser.add_argument("--port", metavar="PORT", help="0 takes any free one (default: DTQ_API_PORT)")
    add_tasks(parser)
    parser.set_defaults(run=run_api)
    parser = commands.add_parser(
        "dev", help="run a Valkey, the API and a worker with demo tasks, for trying things out", allow_abbrev=False
    )
    parser.add_argument("--port", metavar="PORT", help="where the API listens; if taken, the next free one")
    parser.add_argument("--concurrency", metavar="N", help="how many tasks the worker runs at once")
    add_tasks(parser)
    parser.set_defaults(run=run_dev)


def run_worker(arguments: Namespace) -> int:
    """Work until a signal says stop."""
    settings = loaded_of(arguments).settings
    registry = load_registry(settings.modules)
    if not len(registry):
        print_error(
            "dtq: a worker needs task handlers, and no module with any is named: set DTQ_TASK_MODULES or --tasks"
        )
        return Exit.USAGE
    # imported late, as below: a fault of the settings is told before anything heavy is loaded
    from dtq.entrypoints import worker

    return worker.run(settings, registry=registry)


def run_api(arguments: Namespace) -> int:
    """Serve the HTTP API until a signal says stop."""
    settings = loaded_of(arguments).settings
    from dtq.entrypoints import api

    return api.run(settings, registry=load_registry(settings.modules))


def run_dev(arguments: Namespace) -> int:
    """Run everything that is needed to try dtq, until Ctrl-C."""
    loaded = loaded_of(arguments)
    from dtq.entrypoints import dev

    return dev.run(loaded)
