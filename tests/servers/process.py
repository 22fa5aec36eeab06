"""A server as a process of our own on loopback, which never outlives the tests."""

import ctypes
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

from tests.servers.engine import Options

LOOPBACK = "127.0.0.1"
STOP_TIMEOUT_S = 10.0
PR_SET_PDEATHSIG = 1  # from Linux' sys/prctl.h


def free_port() -> int:
    """A loopback port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def die_with_parent() -> Callable[[], None] | None:
    """What a child runs before its program so that it dies with the thread that started it; Linux only."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # looked up here: after fork it is too late to load anything

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    return arm


class ProcessEngine:
    """Runs a server program; its data folder is kept from launch to launch."""

    def __init__(self, program: Path, *, options: Options) -> None:
        self._program = program
        self._options = options
        self._port = options.port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if options.data_dir is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dtq-test-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        else:
            self._folder = options.data_dir

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    @property
    def host(self) -> str:
        return LOOPBACK

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        return self._running().pid

    def launch(self) -> None:
        place = ["--bind", LOOPBACK, "--port", str(self._port), "--dir", str(self._folder)]
        with (self._folder / "server.log").open("ab") as log:
            # a session of its own: Ctrl-C ends the tests, and the tests end the server
            self._process = subprocess.Popen(
                [self._program, *place, *self._options.command_line()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - calls one C function, allocates nothing
            )

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def log(self) -> str:
        return (self._folder / "server.log").read_text(errors="replace")

    def kill(self) -> None:
        self._running().kill()
        self._running().wait(timeout=STOP_TIMEOUT_S)

    def stop(self) -> None:
        if not self.alive():
            return
        self.resume()  # a stopped process would not hear the signal
        self._running().terminate()
        try:
            self._running().wait(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._running().send_signal(signal.SIGCONT)

    def remove(self) -> None:
        self.stop()
        if self._options.data_dir is None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self._program} was never launched")
        return self._process
