import asyncio
import sys

import pytest

from dtq.domain.text import class_name
from dtq.entrypoints import loops
from tests.security.unnameable import Nameless


class Anonymous(SystemExit, metaclass=Nameless):
    """An exit that does not tell its name."""


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, Anonymous], ids=("exit", "interrupt", "anonymous"))
def test_a_loop_goes_on_where_a_task_of_a_handler_asked_to_exit(error: type[BaseException]) -> None:
    heard: list[str] = []

    async def ask() -> None:
        raise error

    async def work() -> str:
        with pytest.raises(error):
            await asyncio.gather(asyncio.create_task(ask()))
        return "done"

    with loops.runner() as runner:
        assert "done" == loops.run_on(runner, work(), on_exit=heard.append)

    assert [class_name(error())] == heard


def test_a_call_of_the_loop_that_asks_to_exit_ends_nothing_either() -> None:
    heard: list[str] = []

    async def work() -> str:
        asyncio.get_running_loop().call_soon(sys.exit, 3)
        await asyncio.sleep(0.01)  # noqa: TID251 - the loop is to turn, and there is no clock here
        return "done"

    with loops.runner() as runner:
        assert "done" == loops.run_on(runner, work(), on_exit=heard.append)

    assert ["SystemExit"] == heard


def test_what_the_work_itself_raises_is_passed_on() -> None:
    async def work() -> None:
        raise SystemExit(2)

    with loops.runner() as runner, pytest.raises(SystemExit):
        loops.run_on(runner, work(), on_exit=pytest.fail)


def test_a_loop_that_was_stopped_goes_on() -> None:
    heard: list[str] = []

    async def work() -> str:
        for _ in range(2):
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0.01)  # noqa: TID251 - the loop is to turn, and there is no clock here
        return "done"

    with loops.runner() as runner:
        assert "done" == loops.run_on(runner, work(), on_exit=heard.append)

    assert ["loop.stop"] * 2 == heard


def test_an_error_of_the_work_is_not_taken_for_a_stop() -> None:
    async def work() -> None:
        raise RuntimeError("its own")

    with loops.runner() as runner, pytest.raises(RuntimeError, match="its own"):
        loops.run_on(runner, work(), on_exit=pytest.fail)
