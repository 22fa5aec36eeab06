"""`dtq dev`: a Valkey, the API and a worker with the demo tasks, in one command that leaves nothing behind."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from dtq.entrypoints import folder as work_folder
from dtq.entrypoints.broker_url import address_of, redacted
from dtq.entrypoints.children import Child, Watch
from dtq.entrypoints.config import Loaded, child_environment
from dtq.entrypoints.dev_screen import banner, say
from dtq.entrypoints.embedded import (
    LOOPBACK,
    NoServer,
    answers,
    command_line,
    find_program,
    free_port,
    listens,
    why_ended,
)
from dtq.entrypoints.folder import FolderBusy, FolderUnusable, Lock

DEMO: Final = "dtq.demo"
FAILED: Final = 1
UNUSABLE: Final = 2
START_LIMIT: Final = timedelta(seconds=30)
BROKER_LIMIT: Final = timedelta(seconds=5)
STALE_SERVER_LIMIT: Final = timedelta(seconds=10)
STOP_LIMIT: Final = timedelta(seconds=10)
LOOK_AGAIN: Final = timedelta(milliseconds=20)
RESTART_PAUSE: Final = timedelta(seconds=1)
MAX_RESTARTS: Final = 5
"""How often a part that ends by itself is started again before everything is stopped."""


class CannotStart(Exception):
    """Something that `dtq dev` needs is missing or does not come up; the message says what."""


def run(loaded: Loaded) -> int:
    """Run everything until Ctrl-C, or until a part cannot be kept running; return the exit code."""
    path = Path.cwd() / work_folder.NAME
    try:
        work_folder.prepare(path)
        lock = Lock(work_folder.lock_path(path))
    except FolderBusy:
        say(f"dtq dev: another one runs in this folder already ({path})")
        return FAILED
    except (FolderUnusable, OSError) as error:
        say(f"dtq dev: {error}")
        return UNUSABLE
    try:
        # not uvloop: the children are told to die with the thread that starts them
        return asyncio.run(_Dev(loaded, path=path).run())
    except (CannotStart, NoServer) as error:
        say(f"dtq dev: {error}")
        return FAILED
    except OSError as error:
        # a file of the folder: what goes over a network is waited for, and told otherwise
        say(f"dtq dev: {error}")
        return UNUSABLE
    finally:
        work_folder.remove_settings(path)
        lock.close()


class _Dev:
    """One run: its parts, in the order in which they start, and what ends it."""

    def __init__(self, loaded: Loaded, *, path: Path) -> None:
        self._loaded = loaded
        self._settings = loaded.settings
        self._path = path
        self._watch = Watch(needed=sys.platform != "linux")
        self._ending = asyncio.Event()
        self._worker: Child | None = None
        self._has_failed = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop)
        try:
            async with AsyncExitStack() as parts:
                changes = await self._start(parts)
                if changes is not None:
                    await self._ending.wait()
                    say("\ndtq dev: finishing what runs; Ctrl-C again ends it now")
        finally:
            self._watch.close()
        return FAILED if self._has_failed else 0

    def _stop(self) -> None:
        """End in good order; asked again, let the worker hand back what it runs."""
        if self._ending.is_set() and self._worker is not None:
            self._worker.signal(signal.SIGTERM)
        self._ending.set()

    async def _start(self, parts: AsyncExitStack) -> Mapping[str, str] | None:
        """Start server, API and worker; None where that was interrupted."""
        url = self._settings.redis_url
        if "DTQ_REDIS_URL" not in self._loaded.given:
            url = await parts.enter_async_context(self._server())
        else:
            await self._broker_of_ones_own(url)
        port = free_port(self._settings.api_port)
        shared = {
            "DTQ_REDIS_URL": url,
            "DTQ_TASK_MODULES": ",".join(dict.fromkeys((DEMO, *self._settings.modules))),
            "DTQ_KEY_PREFIX": self._settings.key_prefix,
        }
        changes = {
            **shared,
            "DTQ_API_HOST": LOOPBACK,
            "DTQ_API_PORT": str(port),
            "DTQ_WORKER_CONCURRENCY": str(self._settings.worker_concurrency),
            # a new one at each start: that of a worker that died is taken until its last sign of life expires
            "DTQ_WORKER_ID": "",
        }
        if self._settings.worker_id:
            say("dtq dev: DTQ_WORKER_ID is left aside: the worker has a new id each time that it is started")
        await parts.enter_async_context(self._kept(self._program("api", changes), within=STOP_LIMIT))
        self._worker = self._program("worker", changes)
        drain = timedelta(seconds=self._settings.drain_timeout_s) + STOP_LIMIT
        await parts.enter_async_context(self._kept(self._worker, within=drain))
        request = b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        why = f"the lines above tell why; the broker is {redacted(url)}"
        await self._until(lambda: answers(port, request=request, expected=b" 200 "), what="the API", why=lambda: why)
        if self._ending.is_set():
            return None
        work_folder.write_settings(self._path, shared)
        say(banner(url, port=port, path=self._path, modules=shared["DTQ_TASK_MODULES"]))
        return changes

    def _program(self, name: str, changes: Mapping[str, str]) -> Child:
        command = [sys.executable, "-m", "dtq.entrypoints.cli", name, "run"]
        return Child(name, command, environment=child_environment(changes), watch=self._watch)

    async def _broker_of_ones_own(self, url: str) -> None:
        """Wait a little for a broker that somebody else runs; one of a third party is the API's to find."""
        address = address_of(url)
        if address is None:
            return
        host, port = address
        what = f"the broker that DTQ_REDIS_URL names, {redacted(url)},"
        why = f"nobody takes connections at {host}:{port}; without DTQ_REDIS_URL dtq dev brings its own"
        await self._until(lambda: listens(host, port), what=what, why=lambda: why, limit=BROKER_LIMIT)

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[str]:
        """Run the embedded server and give its URL; its data stays in the folder."""
        program = find_program(self._settings.redis_server_bin)
        data, log_path = work_folder.data_path(self._path), work_folder.log_path(self._path)
        data.mkdir(mode=0o700, exist_ok=True)
        lock = await self._server_lock()
        port = free_port()

        def why() -> str:
            return why_ended(program, log=log_path, data=data)

        async def first_answer() -> None:
            ping = b"PING\r\n"
            is_up = partial(answers, port, request=ping, expected=b"+PONG")
            await self._until(is_up, what="the server", why=why, of=server)

        with log_path.open("wb") as log:
            server = Child(
                "server",
                command_line(program, port=port, data=data),
                environment=child_environment({}),
                output=log,
                # held by the server itself, so that no second one opens the same data while it lives
                inherited=(lock.descriptor,),
                # in good order: what it was told is on disk then
                last_signal=signal.SIGTERM,
                watch=self._watch,
            )
            async with self._kept(server, within=STOP_LIMIT, first=first_answer, why=why):
                yield f"redis://{LOOPBACK}:{port}/0"
        lock.close()

    async def _server_lock(self) -> Lock:
        """Wait for the server of an earlier run, which may still be writing its data, to end."""
        found: list[Lock] = []

        async def is_free() -> bool:
            try:
                found.append(Lock(work_folder.server_lock_path(self._path)))
            except FolderBusy:
                return False
            return True

        what, lock = "the end of the server of an earlier run", work_folder.server_lock_path(self._path)
        await self._until(is_free, what=what, why=lambda: f"it holds the lock of {lock}", limit=STALE_SERVER_LIMIT)
        if not found:
            raise CannotStart("interrupted")
        return found[0]

    @asynccontextmanager
    async def _kept(
        self,
        child: Child,
        *,
        within: timedelta,
        first: Callable[[], Awaitable[None]] | None = None,
        why: Callable[[], str] | None = None,
    ) -> AsyncIterator[None]:
        """Run *child*, start it again where it ends by itself after *first*, and stop it in the end."""
        await child.start()
        keeper: asyncio.Task[None] | None = None
        try:
            if first is not None:
                await first()
            keeper = asyncio.create_task(self._keep(child, why=why), name=f"keep-{child.name}")
            yield
        finally:
            self._ending.set()
            if keeper is not None:
                keeper.cancel()
                await asyncio.wait({keeper})
            await child.stop(within=within)

    async def _keep(self, child: Child, *, why: Callable[[], str] | None) -> None:
        for _ in range(MAX_RESTARTS):
            code = await child.ended()
            if self._ending.is_set():
                return
            if code == UNUSABLE:
                break
            say(f"dtq dev: the {child.name} ended with {code}; it is started again")
            await self._pause(RESTART_PAUSE)
            if self._ending.is_set():
                return
            await child.start()
        reason = "" if why is None else f": {why()}"
        say(f"dtq dev: the {child.name} does not stay up; everything is stopped{reason}")
        self._has_failed = True
        self._ending.set()

    async def _until(
        self,
        condition: Callable[[], Awaitable[bool]],
        *,
        what: str,
        why: Callable[[], str],
        limit: timedelta = START_LIMIT,
        of: Child | None = None,
    ) -> None:
        """Return when *condition* holds or the end has come.

        Raises CannotStart where it does not hold in time, or where the program *of* which it is a condition has ended.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + limit.total_seconds()
        while not self._ending.is_set() and not await condition():
            if of is not None and of.exit_code is not None:
                raise CannotStart(f"{what} ended with {of.exit_code}; {why()}")
            if loop.time() > ends_at:
                raise CannotStart(f"{what} is not there after {limit.total_seconds():g} s; {why()}")
            await self._pause(LOOK_AGAIN)

    async def _pause(self, duration: timedelta) -> None:
        """Wait, unless the end comes first."""
        try:
            async with asyncio.timeout(duration.total_seconds()):
                await self._ending.wait()
        except TimeoutError:
            return
