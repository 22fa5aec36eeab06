"""Commands that ask first, at a terminal: what ends them there, and that nothing is done then."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.judged.program import COMMAND
from tests.judged.system import System, a_task
from tests.judged.waiting import wait_until

WITHIN_S = 30
CTRL_C = b"\x03"
ASKING = {"purge-dlq": ["purge-dlq"], "purge": ["purge", "--queue", "default"]}


class Terminal:
    """A command at a terminal of its own, which is its controlling one: what is typed there can be Ctrl-C."""

    def __init__(self, system: System, arguments: Sequence[str]) -> None:
        self._ours, theirs = pty.openpty()
        self.shown = b""
        self.program = subprocess.Popen(
            [*COMMAND, *arguments],
            env=system.environment({"TERM": "dumb"}),
            cwd=system.folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call
        )
        os.close(theirs)

    def asks(self) -> bool:
        """Whether its question has been shown."""
        self._look()
        return b"[y/N]" in self.shown

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def ended(self) -> tuple[int, str]:
        """How it ended, and all that it showed."""
        wait_until(self._is_over, within=WITHIN_S, what="the command ends")
        return self.program.returncode, self.shown.decode()

    def close(self) -> None:
        if self.program.poll() is None:
            self.program.kill()
            self.program.wait()
        os.close(self._ours)

    def _is_over(self) -> bool:
        self._look()
        return self.program.poll() is not None and not self._look()

    def _look(self) -> bool:
        """Read what is there; whether that was anything."""
        if not select.select([self._ours], [], [], 0)[0]:
            return False
        try:
            part = os.read(self._ours, 65_536)
        except OSError:
            # the last one who had the terminal's other end open has closed it
            return False
        self.shown += part
        return bool(part)


@contextmanager
def asked(system: System, command: str) -> Iterator[Terminal]:
    """A command that waits for an answer."""
    terminal = Terminal(system, ASKING[command])
    try:
        wait_until(terminal.asks, within=WITHIN_S, what="the question")
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize("later", [b"", b"y\n"], ids=["alone", "and a yes later"])
@pytest.mark.parametrize("command", ASKING)
def test_the_first_ctrl_c_at_a_question_ends_a_command_and_nothing_is_done(
    command: str, later: bytes, system: System
) -> None:
    [task_id] = system.create(a_task("echo"))

    with asked(system, command) as terminal:
        terminal.type(CTRL_C + later)
        code, shown = terminal.ended()

    assert (130, True) == (code, "dtq: nothing was done" in shown)
    assert "Traceback" not in shown
    assert "queued" == system.task(task_id).status
    assert "nothing yet\n" == system.command("audit").stdout


@pytest.mark.parametrize("command", ASKING)
def test_sigterm_at_a_question_ends_a_command_and_nothing_is_done(command: str, system: System) -> None:
    [task_id] = system.create(a_task("echo"))

    with asked(system, command) as terminal:
        terminal.program.send_signal(signal.SIGTERM)
        code, shown = terminal.ended()

    assert (143, True) == (code, "dtq: nothing was done" in shown)
    assert "queued" == system.task(task_id).status
    assert "nothing yet\n" == system.command("audit").stdout


@pytest.mark.parametrize("command", ASKING)
def test_a_yes_after_the_question_is_one(command: str, system: System) -> None:
    [task_id] = system.create(a_task("echo"))

    with asked(system, command) as terminal:
        terminal.type(b"y\n")
        code, shown = terminal.ended()

    assert 0 == code, shown
    assert ("cancelled" if command == "purge" else "queued") == system.task(task_id).status
