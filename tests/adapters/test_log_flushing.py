"""When a line reaches its reader."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import StringIO
from typing import Final

import pytest

from dtq.adapters.logs.lines import MOST_WAITING, Lines

HANG: Final = 30
"""After how many seconds a test has hung."""


class Pipe(StringIO):
    """A stream that shows what has been flushed; its reader may go."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.is_broken = False

    def flush(self) -> None:
        self.seen.append(self.getvalue())
        if self.is_broken:
            raise BrokenPipeError


async def turn() -> None:
    """Let all that waits for the next turn of the loop happen."""
    await asyncio.sleep(0)  # noqa: TID251 - another callback has its turn


def test_without_a_loop_each_line_is_flushed() -> None:
    pipe = Pipe()

    Lines(pipe).info("first")

    assert ["first\n"] == pipe.seen


async def test_the_lines_of_one_turn_are_flushed_together_at_its_end() -> None:
    pipe = Pipe()
    lines = Lines(pipe)

    for turns in range(1, 3):
        lines.info("first")
        lines.info("second")
        assert turns - 1 == len(pipe.seen)
        await turn()

        assert turns == len(pipe.seen)
        assert turns * "first\nsecond\n" == pipe.seen[-1]


async def test_a_line_of_another_thread_is_flushed_at_once_with_those_before_it() -> None:
    pipe = Pipe()
    lines = Lines(pipe)
    lines.info("first")

    async def speak() -> None:
        lines.error("second")
        assert ["first\nsecond\n"] == pipe.seen
        heard.append(True)

    heard: list[bool] = []
    speaker = threading.Thread(target=asyncio.run, args=(speak(),))
    speaker.start()
    speaker.join()

    assert [True] == heard


def test_a_loop_that_ended_before_it_flushed_keeps_no_later_line_back() -> None:
    pipe = Pipe()
    lines = Lines(pipe)

    async def speak() -> None:
        lines.info("first")
        asyncio.get_running_loop().stop()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(speak())
    loop.close()
    lines.info("second")
    asyncio.run(speak())

    assert "first\nsecond\nfirst\n" == pipe.seen[-1]


async def test_a_reader_who_has_gone_is_no_reason_to_stop() -> None:
    pipe = Pipe()
    pipe.is_broken = True
    lines = Lines(pipe)
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    lines.info("first")
    await turn()

    assert ["first\n"] == pipe.seen
    assert [] == told


class Reader:
    """The end of a real pipe that nobody reads until ``read`` is called."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self.stream = os.fdopen(writing, "w", encoding="utf-8")
        os.set_blocking(self._reading, False)

    def read(self) -> str:
        """Return what is in the pipe."""
        try:
            return os.read(self._reading, 1024 * 1024).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        """Let go of both ends."""
        self.stream.close()
        os.close(self._reading)


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Make a pipe."""
    made = Reader()
    yield made
    made.close()


def test_a_reader_who_sleeps_keeps_nobody_waiting_and_hears_all_that_may_wait_in_order(reader: Reader) -> None:
    lines = Lines(reader.stream)
    said = [f"{number}: {'é' * 500}" for number in range(200)]

    for line in said:
        lines.info(line)
    heard = ""
    for _ in range(2 * len(said)):
        heard += reader.read()
        lines.info("")

    assert said == heard.splitlines()[: len(said)]


def test_what_a_sleeping_reader_misses_is_counted_and_told_when_it_reads_on(reader: Reader) -> None:
    missed: list[int] = []
    lines = Lines(reader.stream, on_left_out=missed.append)
    line = "x" * 1023
    count = 2 * MOST_WAITING // 1024

    for _ in range(count):
        lines.info(line)
    heard = 0
    for _ in range(count):
        heard += reader.read().count(line)
        lines.info("")
    heard += reader.read().count(line)

    assert 1 == len(missed)
    assert count - missed[0] <= heard < count


async def test_a_reader_who_wakes_is_served_although_nobody_speaks_any_more(reader: Reader) -> None:
    lines = Lines(reader.stream)
    said = 100 * ["x" * 1023]
    heard: list[str] = []
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def read() -> None:
        heard.append(reader.read())
        if sum(map(len, heard)) == 1024 * len(said):
            ended.set_result(None)
        else:
            loop.call_later(0.01, read)

    for line in said:
        lines.info(line)
    loop.call_soon(read)
    async with asyncio.timeout(HANG):
        await ended

    assert said == "".join(heard).splitlines()


def test_what_is_said_when_the_loop_has_stopped_is_written_at_the_end_of_the_process() -> None:
    script = (
        "import asyncio, sys\n"
        "from dtq.adapters.logs.lines import Lines\n"
        "lines = Lines(sys.stderr)\n"
        "async def speak():\n"
        "    lines.info('last words')\n"
        "    asyncio.get_running_loop().stop()\n"
        "asyncio.new_event_loop().create_task(speak()).get_loop().run_forever()\n"
    )

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG, check=True)

    assert "last words\n" == ended.stderr
