"""The client of programs without an event loop: its threads, and its end."""

import asyncio
import threading
from collections.abc import Iterator

import httpx
import pytest

from dtq import Client, Submission
from dtq.domain.errors import BrokerUnavailable, DtqError, OutcomeUnknown, TaskNotFound
from dtq.domain.status import TaskStatus
from dtq.entrypoints.client.http import HttpTransport
from dtq.entrypoints.client.results import Submitted
from tests.entrypoints.client_ways import KEY, SOME_ID, Greeting, a_container, over_http

HANG_S = 30.0


@pytest.fixture
def sync_client() -> Iterator[Client]:
    with Client(over_http(a_container(api_key=KEY))) as client:
        yield client


def test_the_sync_client_needs_no_loop(sync_client: Client) -> None:
    submitted = sync_client.submit("greet", Greeting(name="Ada"), delay_seconds=5)
    (many,) = sync_client.submit_many([Submission("greet", {"name": "Bob"})])

    assert isinstance(many, Submitted)
    assert {"name": "Ada"} == sync_client.get(submitted.task_id).payload
    assert TaskStatus.CANCELLED is sync_client.cancel(submitted.task_id).status
    assert sync_client.wait(submitted.task_id, timeout=5).is_terminal
    with pytest.raises(TaskNotFound):
        sync_client.get(SOME_ID)


def test_any_thread_may_use_the_sync_client(sync_client: Client) -> None:
    found: list[Submitted] = []
    threads = [
        threading.Thread(target=lambda: found.append(sync_client.submit("greet", {"name": "Ada"}))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 5 == len({submitted.task_id for submitted in found})


def test_a_closed_sync_client_leaves_no_thread() -> None:
    client = Client("http://127.0.0.1:9", retries=0)
    with pytest.raises(BrokerUnavailable):
        client.get(SOME_ID)
    client.close()
    client.close()

    assert "dtq-client" not in {thread.name for thread in threading.enumerate()}


def test_a_closed_sync_client_sends_nothing() -> None:
    client = Client("http://127.0.0.1:9", retries=0)
    client.close()

    with pytest.raises(BrokerUnavailable, match="closed: nothing was sent") as caught:
        client.submit("greet", {"name": "Ada"})
    assert BrokerUnavailable is type(caught.value)


def test_whoever_waits_while_a_sync_client_is_closed_hears_that_the_outcome_is_unknown() -> None:
    asked, heard = threading.Semaphore(0), list[type]()

    class Silent(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            asked.release()
            await asyncio.Event().wait()
            raise httpx.ReadError("gone", request=request)

    client = Client(HttpTransport("http://api", api_key="", timeout=60, retries=0, inner=Silent()))

    def submit() -> None:
        try:
            client.submit("greet", {"name": "Ada"})
        except DtqError as error:
            heard.append(type(error))

    threads = [threading.Thread(target=submit, daemon=True) for _ in range(5)]
    for thread in threads:
        thread.start()
        assert asked.acquire(timeout=HANG_S)

    client.close()

    for thread in threads:
        thread.join(HANG_S)
    assert [OutcomeUnknown] * 5 == heard
