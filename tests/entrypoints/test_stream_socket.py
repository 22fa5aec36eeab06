"""Events over a WebSocket, as a server of the application sees it."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from dtq.application.fan_out import LINGER
from dtq.domain.events import EventType
from dtq.entrypoints.http.stream_delivery import HEARTBEAT, SEND_LIMIT
from dtq.entrypoints.http.stream_protocol import FRAMES
from tests.entrypoints.stream_asgi import HOST, StreamApp
from tests.factories import a_task_id, an_event

SECOND = timedelta(seconds=1)


async def test_a_client_is_told_from_when_on_it_hears_and_then_hears() -> None:
    api = StreamApp()
    event = an_event(type=EventType.TASK_STARTED, task_id=a_task_id(), attempt=1, metadata={"redelivered": True})

    socket = await api.socket()
    await api.publish(event)

    assert "websocket.accept" == socket.types()[0]
    [first, second] = socket.messages
    assert ("subscribed", {"control", "ts"}) == (first["control"], set(first))
    assert msgspec.to_builtins(event) == second


async def test_filters_are_query_parameters_that_may_be_repeated() -> None:
    api = StreamApp()
    events = [an_event(queue=queue) for queue in ("mail", "print", "other")]

    socket = await api.socket("queue=mail&queue=print&type=WORKER_STARTED")
    await api.publish(*events)

    assert ["mail", "print"] == [message["queue"] for message in socket.messages[1:]]


@pytest.mark.parametrize(
    ("query", "field"),
    [("queue=Mail", "queue"), ("type=nothing", "type"), ("task_id=1", "task_id"), ("shape=mail", "shape")],
)
async def test_a_bad_filter_is_refused_with_a_document_that_says_why(query: str, field: str) -> None:
    api = StreamApp()

    socket = await api.socket(query)

    assert ["websocket.http.response.start", "websocket.http.response.body"] == socket.types()
    problem = msgspec.json.decode(socket.body)
    assert (400, "application/problem+json") == (socket.sent[0]["status"], socket.headers["content-type"])
    assert ("INVALID_REQUEST", [field]) == (problem["code"], [fault["field"] for fault in problem["errors"]])
    assert "x-request-id" in socket.headers
    assert 0 == api.clients


async def test_a_server_that_cannot_answer_a_handshake_closes_with_the_reason() -> None:
    api = StreamApp()

    socket = await api.socket("type=" + "ä" * 200, extensions={})

    [message] = socket.sent
    assert ("websocket.close", 1008) == (message["type"], message["code"])
    assert message["reason"].startswith("INVALID_REQUEST: type: ")
    assert len(message["reason"].encode()) <= 123


@pytest.mark.parametrize(
    ("origin", "allowed", "status"),
    [
        (None, "", None),
        (f"http://{HOST}", "", None),
        ("https://other.example", "https://other.example", None),
        ("https://other.example", "", 403),
        ("null", "", 403),
    ],
)
async def test_pages_of_other_hosts_may_listen_only_where_they_are_allowed(
    origin: str | None, allowed: str, status: int | None
) -> None:
    api = StreamApp({"DTQ_WS_ALLOWED_ORIGINS": allowed})

    socket = await api.socket(headers={} if origin is None else {"origin": origin})

    assert status == socket.sent[0].get("status")
    if status is not None:
        assert "ORIGIN_NOT_ALLOWED" == msgspec.json.decode(socket.body)["code"]


async def test_no_more_clients_may_listen_than_is_set() -> None:
    api = StreamApp({"DTQ_WS_MAX_CLIENTS": "1"})
    first = await api.socket()

    second = await api.socket()
    first.hang_up()
    await first.come_to_rest()
    third = await api.socket()

    assert (503, "1") == (second.sent[0]["status"], second.headers["retry-after"])
    assert "TOO_MANY_CLIENTS" == msgspec.json.decode(second.body)["code"]
    assert "websocket.accept" == third.types()[0]


async def test_the_path_is_the_one_that_is_set() -> None:
    api = StreamApp({"DTQ_WS_PATH": "/somewhere/else"})

    assert "websocket.accept" == (await api.socket(path="/somewhere/else")).types()[0]
    assert "websocket.accept" not in (await api.socket()).types()


async def test_a_silence_is_filled_with_heartbeats() -> None:
    api = StreamApp()
    socket = await api.socket()

    await api.pass_time(3 * HEARTBEAT)

    assert ["subscribed", *["heartbeat"] * 3] == [message["control"] for message in socket.messages]


async def test_what_a_client_says_is_passed_over() -> None:
    api = StreamApp()
    socket = await api.socket()

    for _ in range(10):
        socket.say('{"subscribe": "everything"}')
    await api.publish(an_event())

    assert 2 == len(socket.messages)
    assert not socket.life.done()


async def test_a_client_that_goes_is_forgotten() -> None:
    api = StreamApp()
    socket = await api.socket()

    socket.hang_up()
    await socket.come_to_rest()

    assert socket.life.done()
    assert (0, ["websocket.accept", "websocket.send"]) == (api.clients, socket.types())
    assert [] == api.notes.notices
    await api.pass_time(LINGER)


async def test_a_client_that_takes_nothing_for_too_long_is_closed_with_1013() -> None:
    api = StreamApp()
    socket = await api.socket()

    socket.clog()
    await api.publish(an_event())
    await api.pass_time(SEND_LIMIT)
    socket.unclog()
    await socket.come_to_rest()

    assert ("websocket.close", 1013) == (socket.sent[-1]["type"], socket.sent[-1]["code"])
    assert (True, 0) == (socket.life.done(), api.clients)
    assert [("slow_client_closed", {"ending": "stuck", "peer": "192.0.2.1"})] == api.notes.notices


async def test_a_client_that_never_takes_anything_again_is_let_go_all_the_same() -> None:
    api = StreamApp()
    socket = await api.socket()

    socket.clog()
    await api.publish(an_event())
    await api.pass_time(SEND_LIMIT + 2 * SECOND)

    assert (True, 0) == (socket.life.done(), api.clients)


async def test_a_client_whose_buffer_overflows_is_closed_with_1013_at_once() -> None:
    api = StreamApp({"DTQ_WS_BUFFER": "4"})
    socket = await api.socket()
    socket.clog()
    await api.publish(an_event())

    for _ in range(5):
        await api.publish(an_event(type=EventType.TASK_FAILED))
    socket.unclog()
    await socket.come_to_rest()

    assert ("websocket.close", 1013) == (socket.sent[-1]["type"], socket.sent[-1]["code"])
    assert ("slow_client_closed", "overflow") == (api.notes.notices[0][0], api.notes.notices[0][1]["ending"])


async def test_a_slow_client_is_told_how_much_it_lost() -> None:
    api = StreamApp({"DTQ_WS_BUFFER": "4"})
    socket = await api.socket()
    socket.clog()
    await api.publish(an_event(queue="first"))

    await api.pass_time(SECOND)
    for number in range(10):
        await api.publish(an_event(queue=f"q{number}"))
    socket.unclog()
    await api.publish()

    [_, first, gap, *rest] = socket.messages
    assert ("first", "gap", "slow_client", 6) == (first["queue"], gap["control"], gap["reason"], gap["dropped"])
    assert ["q0", "q1", "q2", "q3"] == [message["queue"] for message in rest]


async def test_the_end_of_the_server_is_told_with_1001() -> None:
    api = StreamApp()
    sockets = [await api.socket() for _ in range(3)]

    api.container.fan_out().close()
    for socket in sockets:
        await socket.come_to_rest()

    assert [1001] * 3 == [socket.sent[-1]["code"] for socket in sockets]
    assert all(socket.life.done() for socket in sockets)
    late = await api.socket()
    assert 1001 == late.sent[-1]["code"]


async def test_a_server_that_takes_frames_gets_them_by_the_batch() -> None:
    api = StreamApp()
    socket = await api.framed_socket()
    events = [an_event() for _ in range(5)]

    await api.publish(*events)

    batches = [message[FRAMES] for message in socket.sent[1:]]
    assert [*events] == [msgspec.convert(message, type(events[0])) for message in _unframed(b"".join(batches))[1:]]
    assert len(batches) <= 3


def _unframed(data: bytes) -> list[Any]:
    found = []
    while data:
        assert 0x81 == data[0]
        size, start = data[1], 2
        if size == 126:
            size, start = int.from_bytes(data[2:4]), 4
        found.append(msgspec.json.decode(data[start : start + size]))
        data = data[start + size :]
    return found
