"""A main loop that hangs while it runs no task, and a beat that cannot begin: no worker seems to live that does not."""

import asyncio
from typing import Any, NoReturn

import pytest

from dtq.application.beat_runner import Beating, ThreadBeat
from dtq.application.settings import ExitCode
from dtq.ports.backend import Backend
from tests.application.test_beat import Pulse, Sibling
from tests.application.world import World


async def test_a_main_loop_that_hangs_without_a_task_ends_the_process_after_a_minute() -> None:
    pulse = Pulse()

    await pulse.live(59, ticking=False)
    assert [] == pulse.aborted
    await pulse.live(1, ticking=False)

    assert [ExitCode.HUNG] == pulse.aborted


class Withheld:
    """A beat that is kept from beating."""

    def start(self, beat: Beating) -> None:
        self.beat: Any = beat

    async def stop(self) -> None:
        """Nothing goes on that would have to stop."""


async def test_what_ran_when_the_main_loop_hung_is_named_before_the_process_ends(world: World) -> None:
    withheld = Withheld()
    staff = await world.hire(concurrency=2, beat=withheld)
    ids = [await world.submit("hold") for _ in range(2)]

    # a loop that hangs could not run this test
    withheld.beat.__self__._abort(ExitCode.HUNG)  # noqa: SLF001 - what the beat calls then

    assert [{"active": 2, "task_ids": ", ".join(ids)}] == staff.notes.of("main_loop_hung")
    assert [ExitCode.HUNG] == staff.aborted


async def test_a_main_loop_that_gives_a_sign_now_and_then_does_not_hang() -> None:
    pulse = Pulse()

    for _ in range(3):
        await pulse.live(50, ticking=False)
        await pulse.live(1, ticking=True)

    assert [] == pulse.aborted


async def test_a_beat_for_which_there_is_no_loop_is_told_of_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_none() -> NoReturn:
        raise OSError("too many open files")

    async def beat(_: Backend) -> None:
        await asyncio.Event().wait()

    runner = ThreadBeat(Sibling())
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "new_event_loop", make_none)
        with pytest.raises(OSError, match="too many open files"):
            runner.start(beat)

    await runner.stop()
