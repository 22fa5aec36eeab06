"""dtq worker run, api run, dev: the commands that stay."""

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from dtq.entrypoints.cli.exits import Exit, print_error
from dtq.entrypoints.cli.parsers import add_command, add_group, add_tasks
from dtq.entrypoints.cli.session import loaded_of
from dtq.entrypoints.modules import load_registry

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

_DEV_NOTES: Final = """Commands that are started in the same folder find it by themselves. Its data stays in .dtq/.
Tasks of your own are functions in a module of this folder, my_tasks.py for instance:
  from dtq import task

  @task("greet")
  def greet(payload, ctx):
      return {"text": "Hello, " + payload["name"]}
Code is read when dtq dev starts: start it anew after a change."""


def add_to(commands: "Commands") -> None:
    """Add the commands that run servers."""
    parser = add_command(
        add_group(commands, "worker", does="run a worker"),
        "run",
        does="carry out the tasks of one queue, until Ctrl-C or SIGTERM",
        run=run_worker,
        notes="The first signal lets it finish what runs, a second ends it now.",
        examples=["dtq worker run --tasks my_tasks --queue mail --concurrency 8"],
    )
    parser.add_argument(
        "--queue", dest="worker_queue", metavar="QUEUE", help="the queue that it serves (default: DTQ_WORKER_QUEUE)"
    )
    parser.add_argument(
        "--concurrency", metavar="N", help="how many tasks it runs at once (default: DTQ_WORKER_CONCURRENCY)"
    )
    add_tasks(parser)
    parser = add_command(
        add_group(commands, "api", does="run the HTTP API"),
        "run",
        does="serve the HTTP API, until Ctrl-C or SIGTERM",
        run=run_api,
        examples=["dtq api run --tasks my_tasks --host 127.0.0.1 --port 8000"],
    )
    parser.add_argument("--host", metavar="ADDRESS", help="where it listens (default: DTQ_API_HOST)")
    parser.add_argument("--port", metavar="PORT", help="0 takes any free one (default: DTQ_API_PORT)")
    add_tasks(parser)
    parser = add_command(
        commands,
        "dev",
        does="run a Valkey, the API and a worker with demo tasks, for trying things out",
        run=run_dev,
        notes=_DEV_NOTES,
        examples=["dtq dev", "dtq dev --tasks my_tasks"],
    )
    parser.add_argument("--port", metavar="PORT", help="where the API listens; if taken, the next free one")
    parser.add_argument("--concurrency", metavar="N", help="how many tasks the worker runs at once")
    add_tasks(parser)


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
    loaded = loaded_of(arguments, starts_dev=True)
    from dtq.entrypoints import dev

    return dev.run(loaded)
