"""The client of programs without an event loop: the other one, on a loop of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import CancelledError
from typing import Any, Self, TypeVar, Unpack

from dtq.domain.errors import BrokerUnavailable, DtqError, OutcomeUnknown
from dtq.entrypoints.client.asynchronous import RETRIES, TIMEOUT, AsyncClient
from dtq.entrypoints.client.direct import Tasks
from dtq.entrypoints.client.results import Cancelled, Options, Payload, Submission, Submitted, TaskState
from dtq.entrypoints.client.transport import Transport

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine to its end, on one event loop, and returns what it returns."""

Last = Callable[[], Coroutine[Any, Any, None]]


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
        self._loop = None if run else loop

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
        """Let go of every connection; repeatable, and the end of what other threads wait for: they hear an error."""
        if self._loop is None:
            self._wait_for(self._client.close())
        else:
            self._loop.end(self._client.close)

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
        self._is_ended = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run *coroutine* to its end; where the caller is interrupted, it is canceled.

        Raises BrokerUnavailable after the end of the loop, and OutcomeUnknown where that comes meanwhile.
        """
        with self._lock:
            if self._is_ended:
                coroutine.close()
                raise BrokerUnavailable("the client is closed: nothing was sent")
            future = asyncio.run_coroutine_threadsafe(coroutine, self._running())
        try:
            return future.result()
        except CancelledError as error:
            raise OutcomeUnknown("the client was closed before an answer came") from error
        except BaseException:
            future.cancel()
            raise

    def end(self, last: Last) -> None:
        """Run *last*, and end the loop and its thread; whoever still waits for something hears that it is unknown."""
        with self._lock:
            if self._is_ended:
                return
            self._is_ended = True
            loop = self._running()
            # after all that was handed over before, and nothing is handed over any more
            future = asyncio.run_coroutine_threadsafe(_last(last), loop)
        try:
            future.result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            if self._thread is not None:
                self._thread.join()
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="dtq-client", daemon=True)
            self._thread.start()
        return self._loop


async def nothing() -> None:
    """Be the last of a loop on which nothing is left to do."""


async def _last(last: Last) -> None:
    """Run *last*, then end every other task of the running loop, which would be left half-way otherwise."""
    try:
        await last()
    finally:
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
