"""A process that ends at once, though nobody can be told."""

import os
import subprocess
import sys
from pathlib import Path

LEAVE = """
import sys, threading, time
from dtq.entrypoints.leaving import leave

# buffered, whatever PYTHONUNBUFFERED says
sys.stdout = open(1, "w", closefd=False)
threading.Thread(target=time.sleep, args=(60,)).start()
print("last words")
leave(70)
"""
WITHIN_S = 20


def test_last_words_are_written_and_threads_are_left_behind() -> None:
    done = subprocess.run([sys.executable, "-c", LEAVE], capture_output=True, timeout=WITHIN_S, check=False)

    assert (70, b"last words\n", b"") == (done.returncode, done.stdout, done.stderr)


def test_a_full_disk_holds_nothing_up() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([sys.executable, "-c", LEAVE], stdout=full, timeout=WITHIN_S, check=False)

    assert 70 == done.returncode


def test_a_reader_that_is_gone_holds_nothing_up() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run([sys.executable, "-c", LEAVE], stdout=writer, timeout=WITHIN_S, check=False)
    os.close(writer)

    assert 70 == done.returncode
