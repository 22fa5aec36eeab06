"""Children end with their parent, also where the system does not see to it."""

import signal
import subprocess
import sys

from dtq.entrypoints.watcher import left

SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]
WATCHER = [sys.executable, "-m", "dtq.entrypoints.watcher"]


def test_what_was_taken_back_is_not_left() -> None:
    assert {3: 15} == left(["2 9", "3 15", "2 0", "4 0"])


def test_the_watcher_ends_what_is_left_when_its_parent_is_gone() -> None:
    with (
        subprocess.Popen(SLEEPER) as watched,
        subprocess.Popen(SLEEPER) as taken_back,
        subprocess.Popen(
            [sys.executable, "-m", "dtq.entrypoints.watcher"], stdin=subprocess.PIPE, text=True
        ) as watcher,
    ):
        lines = [f"{watched.pid} {int(signal.SIGTERM)}", f"{taken_back.pid} 9", f"{taken_back.pid} 0"]

        watcher.communicate("\n".join(lines) + "\n", timeout=20)

        assert -signal.SIGTERM == watched.wait(timeout=20)
        assert taken_back.poll() is None
        taken_back.kill()
