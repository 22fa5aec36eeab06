"""What every command needs first: checked settings, the task modules, a container."""

import asyncio
import os
import pwd
import signal
import socket
import threading
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from dtq.domain.audit import Actor
from dtq.entrypoints import folder
from dtq.entrypoints.cli.exits import AWAY
from dtq.entrypoints.cli.notices import Notices
from dtq.entrypoints.cli.output import print_warnings
from dtq.entrypoints.config import Loaded, SettingsError, load
from dtq.entrypoints.container import Container, build
from dtq.entrypoints.modules import load_registry
from dtq.handlers.registry import Registry

T = TypeVar("T")

_OPTIONS: Final[Mapping[str, str]] = {
    "tasks": "DTQ_TASK_MODULES",
    "concurrency": "DTQ_WORKER_CONCURRENCY",
    "worker_queue": "DTQ_WORKER_QUEUE",
    "host": "DTQ_API_HOST",
    "port": "DTQ_API_PORT",
}
"""Options that stand for a setting, by the name that argparse gives them."""


def loaded_of(arguments: Namespace, *, starts_dev: bool = False) -> Loaded:
    """Check all settings: those of the command line, the environment and `.dtq/`. Raises SettingsError.

    What an operator should know is printed as warnings; *starts_dev* tells `dtq dev` itself from what looks for it.
    """
    options = {
        variable: str(getattr(arguments, name))
        for name, variable in _OPTIONS.items()
        if getattr(arguments, name, None) is not None
    }
    found = folder.read_settings(Path(folder.NAME))
    loaded = load(options=options, folder=found.settings)
    if urlsplit(loaded.settings.redis_url).scheme == "memory":
        raise SettingsError(["DTQ_REDIS_URL='memory:': API, worker and commands are processes, and share no memory"])
    print_warnings((*loaded.warnings, *found.warnings, *_strayed(loaded, starts_dev=starts_dev)))
    return loaded


def _strayed(loaded: Loaded, *, starts_dev: bool) -> Iterator[str]:
    """Say where a command goes that was probably meant for a `dtq dev` that does not run."""
    path = Path(folder.NAME)
    if "DTQ_REDIS_URL" not in loaded.given and not starts_dev and path.is_dir():
        yield (
            f"no `dtq dev` runs in this folder, which has been used for one ({path}); this goes to "
            f"{loaded.settings.redis_url}, the default of DTQ_REDIS_URL"
        )


def container_of(arguments: Namespace) -> Container:
    """Put together what a command that talks to the broker needs. Raises SettingsError, TaskModuleError."""
    loaded = loaded_of(arguments)
    settings = loaded.settings
    arguments.away = _away(loaded)
    if "DTQ_LOG_LEVEL" not in loaded.given:
        # the answer says what was done; a log line beside it would only repeat that
        settings = replace(settings, log_level="WARNING")
    registry = load_registry(settings.modules) if hasattr(arguments, "tasks") else Registry()
    arguments.task_types = registry.task_types
    container = build(settings, registry=registry, service="cli")
    container.log.override(Notices(container.log()))
    return container


def _away(loaded: Loaded) -> str:
    """Say of a broker that cannot be reached how it was found."""
    if "DTQ_REDIS_URL" in loaded.left:
        return f"the broker of the `dtq dev` that runs in this folder, which {folder.NAME} names, is unavailable"
    if "DTQ_REDIS_URL" in loaded.given:
        return "the broker, which DTQ_REDIS_URL names, is unavailable"
    return f"{AWAY}: DTQ_REDIS_URL is not set, so its default was tried, {loaded.settings.redis_url}"


class Terminated(Exception):
    """SIGTERM has ended a command."""


def with_broker(container: Container, use: Callable[[Container], Awaitable[T]]) -> T:
    """Run *use* on an event loop of its own, and let go of the broker afterwards; the next call connects anew.

    Ctrl-C cancels it, and so does SIGTERM: it can say what it has done so far. Raises KeyboardInterrupt, Terminated.
    """
    is_terminated = False

    def terminate(task: "asyncio.Task[object]") -> None:
        nonlocal is_terminated
        is_terminated = True
        task.cancel()

    async def run() -> T:
        this = asyncio.current_task()
        if this is not None and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate, this)
        try:
            return await use(container)
        finally:
            await container.backend().server.close()

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        if is_terminated:
            raise Terminated from None
        raise
    finally:
        # a connection belongs to the event loop on which it was made
        container.reset_singletons()


def actor(container: Container) -> Actor:
    """Return who runs this command, for the audit stream."""
    number = os.getuid()
    try:
        # the system's word, not that of LOGNAME, which everybody sets as they like
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = str(number)
    return Actor(name=f"cli:{user}@{socket.gethostname()}", request_id=container.ids().token())
