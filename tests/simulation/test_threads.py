"""The threads of sync handlers: they wait in virtual time, one runs at a time, and none outlives its run."""

import threading
from datetime import timedelta

import pytest

from dtq.application import crew
from tests.simulation.loop import Actor, VirtualLoop
from tests.simulation.server import HostClock
from tests.simulation.threads import THREAD, THREADS, VirtualThreads, virtual_threads


def a_loop() -> VirtualLoop:
    return VirtualLoop(lambda: 0.0)  # type: ignore[abstract] # nothing calls the rest


def a_pool(*, most: int) -> VirtualThreads:
    THREADS.set(Actor("threads"))
    made: VirtualThreads = vars(crew)["ThreadPoolExecutor"](max_workers=most, thread_name_prefix="t")
    return made


def test_a_call_waits_in_virtual_time_and_others_go_on_meanwhile() -> None:
    loop = a_loop()
    clock = HostClock(loop)
    told: list[tuple[str, float]] = []

    def work(name: str, seconds: float) -> None:
        told.append((name, loop.time()))
        THREAD.get().sleep(seconds)
        told.append((name, loop.time()))

    async def run() -> None:
        pool = a_pool(most=2)
        pool.submit(work, "long", 3.0)
        pool.submit(work, "short", 1.0)
        await clock.sleep(timedelta(seconds=2))
        told.append(("main", loop.time()))
        await clock.sleep(timedelta(seconds=2))

    with virtual_threads(loop):
        loop.run_until_complete(run())

    assert told == [("long", 0.0), ("short", 0.0), ("short", 1.0), ("main", 2.0), ("long", 3.0)]


def test_nobody_has_more_threads_than_slots() -> None:
    loop = a_loop()

    async def run() -> None:
        pool = a_pool(most=1)
        for _ in range(2):
            pool.submit(lambda: THREAD.get().sleep(1.0))

    with pytest.raises(AssertionError, match="has 1 threads"), virtual_threads(loop):
        loop.run_until_complete(run())


def test_a_thread_that_waits_for_ever_ends_with_its_run() -> None:
    loop = a_loop()
    before = threading.active_count()

    async def run() -> None:
        a_pool(most=1).submit(lambda: THREAD.get().sleep(1e9))
        await HostClock(loop).sleep(timedelta(seconds=1))
        assert threading.active_count() == before + 1

    with virtual_threads(loop):
        loop.run_until_complete(run())

    assert threading.active_count() == before
