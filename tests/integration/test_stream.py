"""The event stream of a real API: clients of real libraries, an outage, the end of the server, clients that vanish."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from dtq.adapters.redis.wire import json_text
from dtq.domain.events import EventType
from dtq.entrypoints.http.stream_protocol import MAX_MESSAGE_BYTES
from tests.factories import an_event
from tests.judged.sizes import QUICK
from tests.judged.system import Api, System
from tests.judged.test_event_stream import Watch, clients, url_of
from tests.judged.waiting import wait_until
from tests.servers import RedisServer

Harm = Callable[[RedisServer], None]

WITHIN_S = 20.0
NOTICED_WITHIN_S = 30.0


def next_message(client: ClientConnection) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(client.recv(WITHIN_S))
    return message


def next_event(client: ClientConnection) -> dict[str, Any]:
    """The next message that is an event."""
    while True:
        message = next_message(client)
        if "control" not in message:
            return message


def next_word(client: ClientConnection) -> dict[str, Any]:
    """The next message that is neither an event nor a heartbeat."""
    while True:
        message = next_message(client)
        if message.get("control", "heartbeat") != "heartbeat":
            return message


@contextmanager
def watching(api: Api, query: str = "") -> Iterator[ClientConnection]:
    """A WebSocket client that hears from now on."""
    with connect(f"{url_of(api)}{query}") as client:
        assert "subscribed" == next_message(client)["control"]
        yield client


@contextmanager
def reading(api: Api, query: str = "") -> Iterator[Iterator[str]]:
    """A client of server-sent events, as an iterator of lines, that hears from now on."""
    with api.http.stream("GET", f"/api/v1/events{query}") as response:
        assert "text/event-stream; charset=utf-8" == response.headers["content-type"]
        lines = response.iter_lines()
        first = [next(lines) for _ in range(5)]
        assert ["retry: 2000", "", "event: control"] == first[:3]
        yield lines


def test_a_tasks_life_is_told_in_order(system: System) -> None:
    api = system.api()
    system.worker(QUICK)

    with watching(api) as client, reading(api, "?type=TASK_SUCCEEDED") as lines:
        other, mine = (api.http.post("/api/v1/tasks", json={"task_type": "echo", "payload": {}}) for _ in range(2))
        task_id = mine.json()["task_id"]
        told = []
        while "TASK_SUCCEEDED" not in told:
            event = next_event(client)
            if event["task_id"] == task_id:
                told.append(event["type"])
        ended = [json.loads(line.removeprefix("data: ")) for line in _data(lines, number=2)]

    assert ["TASK_QUEUED", "TASK_STARTED", "TASK_SUCCEEDED"] == told
    assert {task_id, other.json()["task_id"]} == {event["task_id"] for event in ended}


def _data(lines: Iterator[str], *, number: int) -> list[str]:
    found: list[str] = []
    while len(found) < number:
        line = next(lines)
        if line.startswith("data: "):
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("begin", "heal"), [(RedisServer.kill, RedisServer.restart), (RedisServer.pause, RedisServer.resume)]
)
def test_clients_outlive_an_outage_and_are_told_of_it(own_system: System, begin: Harm, heal: Harm) -> None:
    api = own_system.api()
    server = own_system.server

    with watching(api) as client, reading(api) as lines:
        begin(server)
        assert "interrupted" == next_word(client)["control"]
        heal(server)
        gap = next_word(client)
        assert ("gap", "broker_lost") == (gap["control"], gap["reason"])

        own_system.redis.publish(own_system.keys.events, json_text(an_event(queue="after")))
        assert "after" == next_event(client)["queue"]
        words = [json.loads(line.removeprefix("data: ")) for line in _data(lines, number=3)]
        assert ["interrupted", "gap", None] == [word.get("control") for word in words]
        assert "after" == words[-1]["queue"]


def test_the_end_of_the_server_is_told_and_waits_for_nobody(system: System) -> None:
    api = system.api()

    with (
        clients("silent", 20, url_of(api)),
        watching(api) as client,
        reading(api) as lines,
    ):
        asked_at = time.monotonic()
        api.terminate()
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(WITHIN_S)
        rest = list(lines)
        assert 0 == api.exit_code(within=WITHIN_S)

    assert closed.value.rcvd is not None
    assert 1001 == closed.value.rcvd.code
    assert [] == [line for line in rest if line.startswith("data: ")]
    assert time.monotonic() - asked_at < 9


def test_a_client_that_has_vanished_is_noticed_though_nothing_happens(system: System) -> None:
    api = system.api()
    watch = Watch(api.pid)
    handles = watch.handles()

    with clients("silent", 20, url_of(api)):
        connected = watch.handles()
        wait_until(lambda: watch.handles() <= handles + 1, within=NOTICED_WITHIN_S, what="the clients are noticed")

    assert 20 <= connected - handles


def test_a_client_of_server_sent_events_that_reads_nothing_is_cut_off(system: System) -> None:
    api = system.api()
    host, port = api.http.base_url.host, api.http.base_url.port
    assert port is not None
    watch = Watch(api.pid)

    with socket.create_connection((host, port)) as stuck, reading(api, "?queue=marked") as lines:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        wait_until(lambda: watch.handles() and "subscribed" in stuck.recv(4096).decode(), within=10, what="it listens")
        handles = watch.handles()
        event = json_text(an_event(type=EventType.TASK_SUCCEEDED, task_type="x" * 100))
        for _ in range(50):
            pipeline = system.redis.pipeline(transaction=False)
            for _ in range(100):
                pipeline.publish(system.keys.events, event)
            pipeline.execute()
        wait_until(lambda: watch.handles() < handles, within=NOTICED_WITHIN_S, what="it is cut off")
        system.redis.publish(system.keys.events, json_text(an_event(queue="marked")))
        assert "marked" in _data(lines, number=1)[0]

    assert "slow_client_closed" in api.log
    assert "[error]" not in api.log


def test_a_handshake_that_is_refused_is_answered_with_a_document(system: System) -> None:
    api = system.api({"DTQ_WS_MAX_CLIENTS": "1"})

    def refusal(query: str = "", **how: Any) -> httpx.Response:
        with pytest.raises(InvalidStatus) as refused, connect(f"{url_of(api)}{query}", **how):
            pass
        answer = refused.value.response
        body = bytes(answer.body or b"")
        return httpx.Response(answer.status_code, headers=list(answer.headers.raw_items()), content=body)

    filtered = refusal("?queue=A&type=B")
    foreign = refusal(origin="https://evil.example")
    with watching(api):
        full = refusal()

    assert [(400, "INVALID_REQUEST"), (403, "ORIGIN_NOT_ALLOWED"), (503, "TOO_MANY_CLIENTS")] == [
        (answer.status_code, answer.json()["code"]) for answer in (filtered, foreign, full)
    ]
    assert {"application/problem+json"} == {answer.headers["content-type"] for answer in (filtered, foreign, full)}
    assert {"queue", "type"} == {fault["field"] for fault in filtered.json()["errors"]}
    assert "[error]" not in api.log


def test_a_client_that_says_more_than_a_goodbye_needs_is_let_go(system: System) -> None:
    with watching(system.api()) as client:
        client.send("x" * (MAX_MESSAGE_BYTES + 1))

        with pytest.raises(ConnectionClosed) as closed:
            next_event(client)

    assert closed.value.rcvd is not None
    assert 1009 == closed.value.rcvd.code
