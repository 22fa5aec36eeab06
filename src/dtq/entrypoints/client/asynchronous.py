"""The client of programs with an event loop."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self, Unpack
from urllib.parse import urlsplit

from dtq.application.admitting import MAX_SUBMISSIONS
from dtq.application.requests import known_task_id
from dtq.application.waiting import LONGEST
from dtq.domain.errors import DtqError
from dtq.entrypoints.client.direct import Tasks, connect
from dtq.entrypoints.client.results import Cancelled, Options, Payload, Submission, Submitted, TaskState
from dtq.entrypoints.client.transport import Transport

TIMEOUT: Final = 10.0
RETRIES: Final = 3


class AsyncClient:
    """Submits tasks and follows them, over an API (``http://``, ``https://``) or straight on a broker (``redis://``).

    Every refusal is a DtqError, the same over both ways. To be used on one event loop, and closed on it.
    """

    def __init__(
        self,
        url: str | Transport,
        *,
        tasks: Tasks = (),
        api_key: str = "",
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
    ) -> None:
        """Name the API or the broker, or another way to the tasks; nothing is sent yet.

        On a broker, *tasks* are the modules or functions whose types can be submitted, by default those of
        DTQ_TASK_MODULES, and a call takes at most some 4 seconds. Over HTTP the server knows them, a call takes at most
        *timeout* seconds, and is sent again up to *retries* times (at most 3) where that cannot do it twice.
        """
        self._transport: Transport = (
            url
            if not isinstance(url, str)
            else _transport(url, tasks=tasks, api_key=api_key, timeout=timeout, retries=retries)
        )

    async def submit(self, task_type: str, payload: Payload | None = None, **options: Unpack[Options]) -> Submitted:
        """Submit a task. The payload is a mapping, or of the handler's payload type; None is an empty one.

        Raises InvalidTask, UnknownTaskType, PayloadTooLarge, QueueFull, IdempotencyInProgress where the key belongs to
        a task that is alive, BrokerUnavailable, or OutcomeUnknown where the task may have come into being.
        """
        submission = Submission(task_type, {} if payload is None else payload, **options)
        return await self._transport.submit(submission)

    async def submit_many(self, submissions: Iterable[Submission]) -> list[Submitted | DtqError]:
        """Submit any number of tasks, 1,000 a request; each gets the answer it would get alone, errors as values.

        One that over 64 MiB of others would wait before is answered with BrokerUnavailable (docs/backpressure.md).

        Raises where a request as a whole fails: what the requests before it submitted stays so; and TypeError for
        what is no Submission.
        """
        if not isinstance(submissions, Iterable):
            raise TypeError(f"submit_many takes a list of dtq.Submission, not one {type(submissions).__name__}")
        answers: list[Submitted | DtqError] = []
        for some in _batches(submissions):
            answers += await self._transport.submit_many(some)
        return answers

    async def get(self, task_id: str) -> TaskState:
        """Return a task as it is. Raises TaskNotFound, or BrokerUnavailable."""
        return await self._transport.get(known_task_id(task_id))

    async def wait(self, task_id: str, *, timeout: float = 60.0) -> TaskState:
        """Return a task as soon as it has ended. Raises TimeoutError after *timeout* seconds, and what `get` does."""
        known, left = known_task_id(task_id), max(0.0, timeout)
        while True:
            within = min(left, LONGEST.total_seconds())
            left -= within
            state = await self._transport.ended(known, within=within)
            if state.is_terminal:
                return state
            if left <= 0:
                raise TimeoutError(f"task {known} has not ended within {timeout:g} s: it is {state.status}")

    async def cancel(self, task_id: str) -> Cancelled:
        """Cancel a waiting task.

        Raises CancelRequested for one that runs, after it was asked to stop; TaskTerminal for one that has ended;
        TaskNotFound, Unauthorized, BrokerUnavailable.
        """
        return await self._transport.cancel(known_task_id(task_id))

    async def close(self) -> None:
        """Let go of every connection."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        """Close at the end of the block."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close."""
        await self.close()


def _transport(url: str, *, tasks: Tasks, api_key: str, timeout: float, retries: int) -> Transport:
    if urlsplit(url).scheme not in {"http", "https"}:
        return connect(url, tasks=tasks)
    # imported late: only this way needs an HTTP client
    from dtq.entrypoints.client.http import HttpTransport

    return HttpTransport(url, api_key=api_key, timeout=timeout, retries=retries)


def _batches(submissions: Iterable[Submission]) -> Iterator[Sequence[Submission]]:
    batch: list[Submission] = []
    for place, submission in enumerate(submissions):
        if not isinstance(submission, Submission):
            raise TypeError(f"submissions[{place}] must be a dtq.Submission, not {type(submission).__name__}")
        batch.append(submission)
        if len(batch) == MAX_SUBMISSIONS:
            yield batch
            batch = []
    if batch:
        yield batch
