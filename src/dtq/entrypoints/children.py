"""Child processes that never outlive this one, however it ends."""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import IO, Final

_PR_SET_PDEATHSIG: Final = 1
_PATIENCE_WITH_THE_KILLED: Final = timedelta(seconds=10)


class Watch:
    """Sees to it that children end with this process on systems that do not do so themselves."""

    def __init__(self, *, needed: bool) -> None:
        """Start the watcher where one is *needed*; otherwise nothing is watched."""
        command = [sys.executable, "-m", "dtq.entrypoints.watcher"]
        self._process = (
            subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, text=True)  # noqa: S603 - our own
            if needed
            else None
        )

    def tell(self, pid: int, number: int) -> None:
        """Send *number* to *pid* when this process dies; 0 takes that back."""
        if self._process is not None and self._process.stdin is not None:
            # the watcher may be gone: then nobody watches, and nothing else is lost
            with contextlib.suppress(OSError):
                print(pid, number, file=self._process.stdin, flush=True)

    def close(self) -> None:
        """End the watcher; children that were not taken back end too."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()


class Child:
    """One program that is started, asked to stop, and killed if it does not."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: IO[bytes] | None = None,
        inherited: Sequence[int] = (),
        last_signal: signal.Signals = signal.SIGKILL,
        watch: Watch,
    ) -> None:
        """*last_signal* is what the child gets when this process dies; *inherited* are files that it keeps open."""
        self.name = name
        self._command = tuple(command)
        self._environment = dict(environment)
        self._output = output
        self._inherited = tuple(inherited)
        self._last_signal = last_signal
        self._watch = watch
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the program, in a session of its own, so that Ctrl-C in the terminal does not reach it."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            pass_fds=self._inherited,
            start_new_session=True,
            preexec_fn=_dies_with_parent(self._last_signal),
        )
        self._watch.tell(self._process.pid, self._last_signal)

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the program runs, and before it is started."""
        return None if self._process is None else self._process.returncode

    async def ended(self) -> int:
        """Wait for the end and return the exit code, negative for a signal."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        code = await self._process.wait()
        self._watch.tell(self._process.pid, 0)
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the program has ended."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def stop(self, *, within: timedelta) -> None:
        """Ask the program to end, and kill it where it has not done so in time."""
        if self._process is None:
            return
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self.ended()
        except TimeoutError:
            self.signal(signal.SIGKILL)
            async with asyncio.timeout(_PATIENCE_WITH_THE_KILLED.total_seconds()):
                await self.ended()


def _dies_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Return what a child runs before its program, so that Linux tells it when its parent dies."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: between fork and exec nothing may be loaded any more
    parent = os.getpid()

    def arm() -> None:
        prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before it could be watched
            os._exit(1)

    return arm
