"""The client of programs without an event loop: the other one, on a loop of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Self, TypeVar, Unpack

from dtq.domain.errors import DtqError
from dtq.entrypoints.client.asynchronous import RETRIES, TIMEOUT, AsyncClient
from dtq.entrypoints.client.direct import Tasks
from dtq.entrypoints.client.results import Cancelled, Options, Payload, Submission, Submitted, TaskState
from dtq.entrypoints.client.transport import Transport

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end, on one event loop, and returns what it returns."""


class Client:
    """Submits tasks and follows them; see AsyncClient, whose every method this one has. Any thread may use it.

    What is made before a process forks must not be used after that.
    """

    def __init__(
        self,
        url: str | Transport,
        *,
        tasks: Tasks = (),
        api_key: str = "",
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        run: Run | None = None,
    ) -> None:
        """Name the API or the broker; see AsyncClient. *run* runs coroutines where the caller has a loop for them."""
        self._client = AsyncClient(url, tasks=tasks, api_key=api_key, timeout=timeout, retries=retries)
        loop = LoopThread()
        self._run: Run = run or loop.run
        self._end: Callable[[], None] = loop.stop

    def submit(self, task_type: str, payload: Payload | None = None, **options: Unpack[Options]) -> Submitted:
        """Submit a task; see AsyncClient.submit."""
        return self._wait_for(self._client.submit(task_type, payload, **options))

    def submit_many(self, submissions: Iterable[Submission]) -> list[Submitted | DtqError]:
        """Submit any number of tasks; see AsyncClient.submit_many."""
        return self._wait_for(self._client.submit_many(submissions))

    def get(self, task_id: str) -> TaskState:
        """Return a task as it is; see AsyncClient.get."""
        return self._wait_for(self._client.get(task_id))

    def wait(self, task_id: str, *, timeout: float = 60.0) -> TaskState:
        """Return a task as soon as it has ended; see AsyncClient.wait."""
        return self._wait_for(self._client.wait(task_id, timeout=timeout))

    def cancel(self, task_id: str) -> Cancelled:
        """Cancel a waiting task; see AsyncClient.cancel."""
        return self._wait_for(self._client.cancel(task_id))

    def close(self) -> None:
        """Let go of every connection; repeatable."""
        self._wait_for(self._client.close())
        self._end()

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        result: T = self._run(coroutine)
        return result


class LoopThread:
    """An event loop in a thread of its own, begun when it is first needed; it ends with its process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run *coroutine* to its end; where the caller is interrupted, it is canceled."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and its thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(_end_all(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="dtq-client", daemon=True)
                self._thread.start()
            return self._loop


async def _end_all() -> None:
    """End every other task of the running loop, which would be left half-way otherwise."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
