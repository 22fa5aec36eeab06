"""Calls from threads onto a loop end with the loop."""

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from dtq.testing import threads
from dtq.testing.threads import FromThreads


def test_a_call_does_not_outlive_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_LOOK_S", 0.01)
    began = threading.Event()
    from_threads = FromThreads()

    async def never() -> None:
        began.set()
        await asyncio.Event().wait()

    async def until_it_began() -> None:
        from_threads.loop = asyncio.get_running_loop()
        calling.append(pool.submit(from_threads.run, never()))
        await asyncio.to_thread(began.wait)

    calling: list[Future[None]] = []
    with ThreadPoolExecutor(1) as pool:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(until_it_began())

        (call,) = calling
        with pytest.raises(RuntimeError, match="the test has ended"):
            call.result(timeout=10)
        # the call was canceled, which its coroutine hears of where the loop runs again
        loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
        loop.close()
