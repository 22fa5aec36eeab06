"""One timer stops each request that takes too long, and nobody else."""

import asyncio
from collections.abc import Awaitable

import pytest

from dtq.adapters.memory.clock import settle
from dtq.adapters.redis.deadlines import Deadlines

SOON = 0.01
LATER = 0.05
FAR_OFF = 600.0

pytestmark = pytest.mark.timeout(20)


async def wait(deadlines: Deadlines, seconds: float, *, until: Awaitable[object] | None = None) -> None:
    with deadlines.within(seconds):
        await (until or asyncio.Event().wait())


async def test_who_is_late_is_stopped() -> None:
    with pytest.raises(TimeoutError):
        await wait(Deadlines(), SOON)


async def test_who_was_late_goes_on() -> None:
    with pytest.raises(TimeoutError):
        await wait(Deadlines(), SOON)

    await settle()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_who_is_in_time_is_left_alone() -> None:
    deadlines = Deadlines()
    await wait(deadlines, SOON, until=settle())

    with pytest.raises(TimeoutError):
        await wait(deadlines, LATER)


async def test_each_of_many_is_stopped_whatever_their_order() -> None:
    deadlines = Deadlines()
    waiting = [asyncio.create_task(wait(deadlines, seconds)) for seconds in (FAR_OFF, LATER, SOON, LATER)]

    ended = await asyncio.gather(*waiting[1:], return_exceptions=True)

    assert [TimeoutError] * 3 == [type(error) for error in ended]
    assert not waiting[0].done()
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]


async def test_who_is_canceled_in_time_is_not_late() -> None:
    waiting = asyncio.create_task(wait(Deadlines(), FAR_OFF))
    await settle()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_who_is_canceled_as_well_as_late_is_canceled() -> None:
    async def late_and_canceled() -> None:
        try:
            with deadlines.within(SOON):
                try:
                    await asyncio.Event().wait()
                finally:
                    # it is stopped now, and canceled by somebody else before it has left
                    waiting.cancel()
        finally:
            left.set()

    deadlines, left = Deadlines(), asyncio.Event()
    waiting = asyncio.create_task(late_and_canceled())

    await left.wait()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_who_was_canceled_before_may_be_late() -> None:
    """As where a task that was canceled writes its last words."""
    found: list[BaseException] = []

    async def last_words() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await wait(deadlines, SOON)
            except TimeoutError as error:
                found.append(error)
            raise

    deadlines = Deadlines()
    waiting = asyncio.create_task(last_words())
    await settle()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [TimeoutError] == [type(error) for error in found]


def test_who_is_late_on_another_loop_is_stopped_as_well() -> None:
    deadlines = Deadlines()
    asyncio.run(wait(deadlines, LATER, until=settle()))

    with pytest.raises(TimeoutError):
        asyncio.run(wait(deadlines, 2 * LATER))


def test_only_a_task_is_stopped() -> None:
    raised: list[BaseException] = []

    def outside() -> None:
        try:
            Deadlines().within(SOON)
        except RuntimeError as error:
            raised.append(error)

    async def calls_back() -> None:
        asyncio.get_running_loop().call_soon(outside)
        await settle()

    asyncio.run(calls_back())
    assert raised
