"""The client over HTTP: what is lost on the way, and what a server may say."""

from collections.abc import Callable

import httpx
import msgspec
import pytest

from dtq import AsyncClient, Submission
from dtq.domain.errors import (
    BrokerUnavailable,
    CancelRequested,
    DtqError,
    IdempotencyInProgress,
    InvalidRequest,
    OutcomeUnknown,
    PayloadTooLarge,
    QueueFull,
    TaskNotFound,
    TaskTerminal,
    Unauthorized,
    UnknownTaskType,
    UnsuitableBroker,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from dtq.entrypoints.client.http import HttpTransport
from dtq.entrypoints.client.refusals import Refusal, UnexpectedAnswer, error_of, refusal_of
from dtq.entrypoints.client.results import Submitted
from dtq.entrypoints.http.errors import problem_of
from tests.entrypoints.client_ways import KEY, SOME_ID, a_container, over_http


class Lost:
    """Loses the first answers."""

    def __init__(self, number: int, *, status: int | None = None) -> None:
        self.left = number
        self.requests = 0
        self._status = status

    def __call__(self, request: httpx.Request) -> httpx.Response | None:
        self.requests += 1
        if self.left <= 0:
            return None
        self.left -= 1
        if self._status is not None:
            return httpx.Response(self._status, text="<html>")
        raise httpx.ReadError("gone", request=request)


@pytest.mark.parametrize("status", [None, 502, 503, 504])
async def test_a_lost_answer_submits_no_second_task(status: int | None) -> None:
    container, lost = a_container(api_key=KEY), Lost(2, status=status)
    async with AsyncClient(over_http(container, spoil=lost)) as client:
        one = await client.submit("greet", {"name": "Ada"})
        lost.left = 1
        many = await client.submit_many([Submission("greet", {"name": "Ada"})] * 3)

    stored = (await container.tasks().recent(queue=None, status=None, limit=10)).tasks
    assert {task.task_id for task in stored} == {one.task_id, *(answer.task_id for answer in many)}  # type: ignore[union-attr]  # none was refused
    assert 4 == len(stored)


async def test_a_cancel_whose_answer_was_lost_is_done() -> None:
    container, lost = a_container(api_key=KEY), Lost(0)
    async with AsyncClient(over_http(container, spoil=lost)) as client:
        submitted = await client.submit("greet", {"name": "Ada"})
        lost.left = 1

        canceled = await client.cancel(submitted.task_id)

    assert TaskStatus.CANCELLED is canceled.status


async def test_a_cancel_whose_answer_was_lost_does_not_pass_for_the_end_that_the_task_had() -> None:
    container, lost = a_container(api_key=KEY), Lost(0)
    async with AsyncClient(over_http(container, spoil=lost)) as client:
        submitted = await client.submit("greet", {"name": "Ada"})
        ended = problem_of(TaskTerminal(TaskId(submitted.task_id), status=TaskStatus.SUCCEEDED))
        answers = iter([None, httpx.Response(ended.status, content=msgspec.json.encode(ended))])

        def lose_and_tell_of_the_end(request: httpx.Request) -> httpx.Response:
            return next(answers) or lost_answer(request)

        transport = over_http(container, spoil=lose_and_tell_of_the_end)
        async with AsyncClient(transport) as late:
            with pytest.raises(TaskTerminal) as caught:
                await late.cancel(submitted.task_id)

    assert TaskStatus.SUCCEEDED is caught.value.status


def lost_answer(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("gone", request=request)


async def test_what_may_have_been_done_at_the_first_try_stays_unknown() -> None:
    faults = iter([httpx.ReadError, httpx.ConnectError])

    def fail(request: httpx.Request) -> httpx.Response:
        raise next(faults)("gone", request=request)

    async with AsyncClient(over_http(a_container(), retries=1, spoil=fail)) as client:
        with pytest.raises(OutcomeUnknown):
            await client.submit("greet", {"name": "Ada"})


REFUSALS = [BrokerUnavailable("away"), QueueFull("queue_full", value=5, limit=5)]


def lost_and_then(answer: httpx.Response) -> Callable[[httpx.Request], httpx.Response]:
    answers = iter([None, answer])
    return lambda request: next(answers) or lost_answer(request)


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refusal_of_the_repeat_does_not_deny_the_first_try(refusal: DtqError) -> None:
    problem = problem_of(refusal)
    refused = httpx.Response(problem.status, content=msgspec.json.encode(problem))
    async with AsyncClient(over_http(a_container(), retries=1, spoil=lost_and_then(refused))) as client:
        with pytest.raises(OutcomeUnknown):
            await client.submit("greet", {"name": "Ada"})
    async with AsyncClient(over_http(a_container(), retries=1, spoil=lost_and_then(refused))) as client:
        with pytest.raises(OutcomeUnknown):
            await client.submit_many([Submission("greet", {"name": "Ada"})])


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_of_a_repeated_batch_each_refusal_says_that_the_first_try_may_have_been_carried_out(
    refusal: DtqError,
) -> None:
    made = {"task_id": SOME_ID, "status": "queued"}
    items = [made, {"problem": msgspec.to_builtins(problem_of(refusal))}]
    submissions = [Submission("greet", {"name": "Ada"})] * 2
    batch = httpx.Response(200, json={"results": items})
    async with AsyncClient(over_http(a_container(), retries=1, spoil=lost_and_then(batch))) as client:
        repeated = await client.submit_many(submissions)
    async with AsyncClient(over_http(a_container(), spoil=lambda _: batch)) as client:
        at_once = await client.submit_many(submissions)

    assert [Submitted, OutcomeUnknown] == [type(one) for one in repeated]
    assert [Submitted, type(refusal)] == [type(one) for one in at_once]


@pytest.mark.parametrize("fault", [httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout])
async def test_what_was_never_sent_leaves_nothing_unknown(fault: type[httpx.TransportError]) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise fault("no connection", request=request)

    async with AsyncClient(over_http(a_container(), retries=0, spoil=fail)) as client:
        with pytest.raises(BrokerUnavailable) as caught:
            await client.submit("greet", {"name": "Ada"})

    assert BrokerUnavailable is type(caught.value)


async def test_of_a_batch_only_what_has_a_key_of_the_callers_is_a_duplicate() -> None:
    found = {"task_id": SOME_ID, "status": "succeeded", "duplicate": True}
    answer = httpx.Response(200, json={"results": [found, found]})
    submissions = [Submission("greet", {"name": "Ada"}, idempotency_key=key) for key in (None, "key-1")]
    async with AsyncClient(over_http(a_container(), spoil=lambda _: answer)) as client:
        results = await client.submit_many(submissions)

    assert [
        Submitted(task_id=SOME_ID, status=TaskStatus.SUCCEEDED, duplicate=is_duplicate)
        for is_duplicate in (False, True)
    ] == list(results)


async def test_fewer_results_than_submissions_are_an_answer_that_nobody_knows() -> None:
    short = httpx.Response(200, json={"results": [{"task_id": SOME_ID, "status": "queued"}]})
    async with AsyncClient(over_http(a_container(), spoil=lambda _: short)) as client:
        with pytest.raises(UnexpectedAnswer, match="1 results for 2 submissions"):
            await client.submit_many([Submission("greet", {"name": "Ada"})] * 2)


async def test_a_broker_that_does_not_suit_is_told_at_once() -> None:
    problem = problem_of(UnsuitableBroker("too old"))
    lost: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        lost.append(request)
        return httpx.Response(problem.status, content=msgspec.json.encode(problem))

    async with AsyncClient(over_http(a_container(), spoil=refuse)) as client:
        with pytest.raises(UnsuitableBroker):
            await client.submit("greet", {"name": "Ada"})

    assert 1 == len(lost)


async def test_without_retries_nothing_is_sent_twice_and_no_key_is_made_up() -> None:
    container, lost = a_container(api_key=KEY), Lost(0)
    async with AsyncClient(over_http(container, retries=0, spoil=lost)) as client:
        submitted = await client.submit("greet", {"name": "Ada"})
        lost.left, lost.requests = 1, 0
        with pytest.raises(OutcomeUnknown, match="http://api gave no answer: ReadError"):
            await client.submit("greet", {"name": "Ada"})
        state = await client.get(submitted.task_id)

    assert (None, 2) == (state.idempotency_key, lost.requests)


async def test_a_read_that_gets_no_answer_leaves_nothing_unknown() -> None:
    async with AsyncClient(over_http(a_container(), retries=1, spoil=Lost(9))) as client:
        with pytest.raises(BrokerUnavailable) as caught:
            await client.get(SOME_ID)

    assert BrokerUnavailable is type(caught.value)


async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    async with AsyncClient("http://user:secret@127.0.0.1:9", retries=1) as client:
        with pytest.raises(BrokerUnavailable, match="cannot be reached: ConnectError") as caught:
            await client.submit("greet", {"name": "Ada"})

    assert BrokerUnavailable is type(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_server_that_is_silent_is_given_up() -> None:
    class Silent(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            del request
            raise TimeoutError

    async with AsyncClient(HttpTransport("http://api", api_key="", timeout=1, retries=0, inner=Silent())) as client:
        with pytest.raises(OutcomeUnknown, match="did not answer within 1 s"):
            await client.submit("greet", {"name": "Ada"})
        with pytest.raises(BrokerUnavailable, match="did not answer within 1 s"):
            await client.get(SOME_ID)


async def test_a_wrong_key_is_refused() -> None:
    async with AsyncClient(over_http(a_container(api_key="another"))) as client:
        submitted = await client.submit("greet", {"name": "Ada"})
        with pytest.raises(Unauthorized):
            await client.cancel(submitted.task_id)


@pytest.mark.parametrize(("status", "text"), [(200, "<html>"), (418, "<html>"), (409, '{"status":409,"code":"NEW"}')])
async def test_an_answer_that_nobody_knows_is_told_as_it_is(status: int, text: str) -> None:
    async with AsyncClient(over_http(a_container(), spoil=lambda _: httpx.Response(status, text=text))) as client:
        with pytest.raises(UnexpectedAnswer, match=f"status {status}"):
            await client.get(SOME_ID)


ERRORS: list[DtqError] = [
    PayloadTooLarge(size=9, limit=3, field="tasks", unit="submissions"),
    QueueFull("schedule_full", value=7, limit=5, retry_after_s=3),
    UnknownTaskType("mail:v2"),
    IdempotencyInProgress(TaskId(SOME_ID), status=None),
    TaskNotFound(SOME_ID),
    TaskTerminal(TaskId(SOME_ID), status=TaskStatus.EXPIRED),
    CancelRequested(TaskId(SOME_ID)),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_comes_through_http_whole(error: DtqError) -> None:
    problem = problem_of(error)

    found = error_of(refusal_of(msgspec.json.encode(problem), status=problem.status), task_id=SOME_ID)

    assert (type(error), str(error), vars(error)) == (type(found), str(found), vars(found))


@pytest.mark.parametrize("error", [BrokerUnavailable("x"), OutcomeUnknown("x"), UnsuitableBroker("x")])
def test_troubles_of_the_broker_keep_their_kind(error: DtqError) -> None:
    problem = problem_of(error)

    assert type(error) is type(error_of(refusal_of(msgspec.json.encode(problem), status=problem.status)))


def test_what_is_wrong_with_a_request_as_a_whole_is_told_in_the_servers_words() -> None:
    error = error_of(Refusal(status=421, code="INVALID_REQUEST", detail="asked by another name"))

    assert (InvalidRequest, "request: asked by another name") == (type(error), str(error))
