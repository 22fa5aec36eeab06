"""When a line reaches its reader."""

import asyncio
import threading
from io import StringIO

from dtq.adapters.logs.lines import Lines


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
