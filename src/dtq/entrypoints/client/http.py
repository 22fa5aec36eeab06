"""The way to the tasks over HTTP; what is sent again is done once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Final, TypeVar

import httpx
import msgspec
from msgspec import Raw, Struct

from dtq.application.admitting import Fields
from dtq.domain.errors import (
    BrokerUnavailable,
    DtqError,
    IdempotencyInProgress,
    OutcomeUnknown,
    TaskTerminal,
    UnsuitableBroker,
    doubted,
)
from dtq.domain.status import TaskStatus
from dtq.entrypoints.broker_url import redacted
from dtq.entrypoints.client.refusals import Refusal, UnexpectedAnswer, error_of, refusal_of
from dtq.entrypoints.client.results import Cancelled, Submission, Submitted, TaskState, fields_of
from dtq.entrypoints.container import host

PAUSES: Final = tuple(timedelta(milliseconds=ms) for ms in (100, 300, 900))
"""How long a request waits before each repeat."""

_AWAY: Final = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
T = TypeVar("T")

_AS_TEXT: Final = ("payload", "metadata")


class _Answer(Struct, frozen=True):
    """What the server said; ``is_doubtful`` where an earlier try of the same request may have been carried out."""

    status: int
    content: bytes
    is_doubtful: bool

    def refusal(self) -> DtqError:
        """Return what it says of a submission that was refused."""
        return self.said(error_of(refusal_of(self.content, status=self.status)))

    def said(self, error: DtqError) -> DtqError:
        """Return what *error*, which stands in it, says of a submission."""
        return doubted(error) if self.is_doubtful else error


class _Item(Struct, frozen=True, kw_only=True):
    task_id: str = ""
    status: TaskStatus | None = None
    duplicate: bool = False
    problem: Refusal | None = None


class _Batch(Struct, frozen=True):
    results: list[_Item]


class HttpTransport:
    """An API at *url*. Each call takes at most *timeout* seconds, its repeats included, beside what it waits for."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str,
        timeout: float,
        retries: int,
        inner: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._name = redacted(url)
        self._timeout = timeout
        self._pauses = PAUSES[: max(0, retries)]
        self._clock, self._ids = host()
        headers = {"Content-Type": "application/json"} | ({"X-API-Key": api_key} if api_key else {})
        base = f"{url.rstrip('/')}/api/v1/"
        self._http = httpx.AsyncClient(base_url=base, headers=headers, timeout=None, transport=inner)  # noqa: S113 - _call has one

    async def submit(self, submission: Submission) -> Submitted:
        """Submit a task, under a key of its own where it has none, by which a repeat is known."""
        keyed, is_own_key = self._keyed(fields_of(submission))
        answer = await self._call("POST", "tasks", body=_json(keyed), is_write=True)
        if answer.status in {HTTPStatus.OK, HTTPStatus.ACCEPTED}:
            submitted = _decode(answer, Submitted)
            return msgspec.structs.replace(submitted, duplicate=submitted.duplicate and not is_own_key)
        return _own(answer.refusal(), is_own_key=is_own_key)

    async def submit_many(self, submissions: Sequence[Submission]) -> Sequence[Submitted | DtqError]:
        """Submit tasks in one request, each for itself."""
        prepared = [_prepared(submission) for submission in submissions]
        sound = [fields for fields in prepared if not isinstance(fields, DtqError)]
        answered = iter(await self._submit_all(sound) if sound else ())
        return [one if isinstance(one, DtqError) else next(answered) for one in prepared]

    async def _submit_all(self, submissions: Sequence[Fields]) -> Sequence[Submitted | DtqError]:
        keyed = [self._keyed(fields) for fields in submissions]
        body = b'{"tasks":[' + b",".join(_json(fields) for fields, _ in keyed) + b"]}"
        answer = await self._call("POST", "tasks/batch", body=body, is_write=True)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise answer.refusal()
        items = _decode(answer, _Batch).results
        if len(items) != len(keyed):
            raise UnexpectedAnswer(f"{len(items)} results for {len(keyed)} submissions")
        return [_item(item, answer, is_own_key=is_own_key) for item, (_, is_own_key) in zip(items, keyed, strict=True)]

    async def get(self, task_id: str) -> TaskState:
        """Return a task as it is."""
        return self._expect(await self._call("GET", f"tasks/{task_id}"), TaskState, task_id=task_id)

    async def ended(self, task_id: str, *, within: float) -> TaskState:
        """Return a task when it has ended; the server answers then."""
        answer = await self._call("GET", f"tasks/{task_id}?wait={within:.3f}", waits=within)
        return self._expect(answer, TaskState, task_id=task_id)

    async def cancel(self, task_id: str) -> Cancelled:
        """Cancel a waiting task."""
        answer = await self._call("POST", f"tasks/{task_id}/cancel", body=b"{}", is_write=True)
        try:
            return self._expect(answer, Cancelled, task_id=task_id)
        except TaskTerminal as error:
            if answer.is_doubtful and error.status is TaskStatus.CANCELLED:
                # an earlier try did it, and its answer was lost
                return Cancelled(task_id=task_id, status=error.status)
            raise

    async def close(self) -> None:
        """Let go of every connection."""
        await self._http.aclose()

    def _keyed(self, fields: Fields) -> tuple[Fields, bool]:
        if fields.get("idempotency_key") is not None or not self._pauses:
            return fields, False
        return {**fields, "idempotency_key": self._ids.token()}, True

    def _expect(self, answer: _Answer, kind: type[T], *, task_id: str = "") -> T:
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise error_of(refusal_of(answer.content, status=answer.status), task_id=task_id)
        return _decode(answer, kind)

    async def _call(
        self, method: str, path: str, *, body: bytes | None = None, is_write: bool = False, waits: float = 0.0
    ) -> _Answer:
        try:
            async with asyncio.timeout(self._timeout + waits):
                return await self._repeat(method, path, body=body, is_write=is_write)
        except TimeoutError as error:
            message = f"{self._name} did not answer within {self._timeout + waits:g} s"
            raise (OutcomeUnknown(message) if is_write else BrokerUnavailable(message)) from error

    async def _repeat(self, method: str, path: str, *, body: bytes | None, is_write: bool) -> _Answer:
        is_doubtful = False
        for pause in (*self._pauses, None):
            answered = await self._once(method, path, body=body)
            if isinstance(answered, httpx.Response):
                return _Answer(answered.status_code, answered.content, is_doubtful)
            is_doubtful = is_doubtful or isinstance(answered, OutcomeUnknown)
            if pause is None or isinstance(answered, UnsuitableBroker):
                if not isinstance(answered, BrokerUnavailable):
                    raise answered
                if is_write and is_doubtful:
                    raise doubted(answered)
                raise BrokerUnavailable(str(answered)) from answered
            await self._clock.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    async def _once(self, method: str, path: str, *, body: bytes | None) -> httpx.Response | DtqError:
        """Send a request once; return the answer, or the error after which it may be sent again."""
        try:
            response = await self._http.request(method, path, content=body)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            return BrokerUnavailable(f"{self._name} cannot be reached: {type(error).__name__}")
        except httpx.TransportError as error:
            return OutcomeUnknown(f"{self._name} gave no answer: {type(error).__name__}")
        if response.status_code not in _AWAY:
            return response
        refusal = refusal_of(response.content, status=response.status_code)
        # what has no code is a proxy's word, which does not know either
        return error_of(refusal) if refusal.code else OutcomeUnknown(f"{self._name} answered {response.status_code}")


def _prepared(submission: Submission) -> Fields | DtqError:
    try:
        return fields_of(submission)
    except DtqError as error:
        return error


def _json(fields: Fields) -> bytes:
    texts = {name: Raw(str(fields[name]).encode()) for name in _AS_TEXT if name in fields}
    return msgspec.json.encode({**fields, **texts})


def _decode(answer: _Answer, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnexpectedAnswer(f"status {answer.status}, and no {kind.__name__} in it: {error}") from error


def _item(item: _Item, answer: _Answer, *, is_own_key: bool) -> Submitted | DtqError:
    if item.problem is None:
        return Submitted(task_id=item.task_id, status=item.status, duplicate=item.duplicate and not is_own_key)
    try:
        return _own(answer.said(error_of(item.problem)), is_own_key=is_own_key)
    except DtqError as error:
        return error


def _own(error: DtqError, *, is_own_key: bool) -> Submitted:
    """Return the task that holds a key which nobody else can know: an earlier try made it. Raises any other error."""
    if is_own_key and isinstance(error, IdempotencyInProgress):
        return Submitted(task_id=error.task_id, status=error.status)
    raise error
