"""Server-sent events, as a server of the application sees them."""

from datetime import timedelta

import msgspec
import pytest

from dtq.domain.events import EventType
from dtq.entrypoints.http.stream_delivery import HEARTBEAT, SEND_LIMIT
from tests.entrypoints.stream_asgi import StreamApp
from tests.factories import an_event

SECOND = timedelta(seconds=1)


def fields(body: bytes) -> list[dict[str, str]]:
    """The blocks of a stream, each with its fields; a comment is a field without a name."""
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in body.decode().split("\n\n")[:-1]]


async def test_events_come_as_data_and_words_about_the_stream_as_control() -> None:
    api = StreamApp()
    event = an_event(type=EventType.WORKER_STALE)

    stream = await api.stream()
    await api.publish(event)

    assert (200, "text/event-stream; charset=utf-8") == (stream.sent[0]["status"], stream.headers["content-type"])
    assert "no-store" == stream.headers["cache-control"]
    [retry, word, data] = fields(stream.body)
    assert {"retry": "2000"} == retry
    assert ("control", "subscribed") == (word["event"], msgspec.json.decode(word["data"])["control"])
    assert ({"data"}, msgspec.to_builtins(event)) == (set(data), msgspec.json.decode(data["data"]))


async def test_heartbeats_are_comments() -> None:
    api = StreamApp()
    stream = await api.stream()

    await api.pass_time(2 * HEARTBEAT)

    assert stream.body.endswith(b"\n\n: heartbeat\n\n: heartbeat\n\n")


async def test_filters_are_those_of_the_websocket() -> None:
    api = StreamApp()

    stream = await api.stream("queue=mail&queue=print&type=WORKER_STARTED")
    await api.publish(*[an_event(queue=queue) for queue in ("mail", "other", "print")])

    assert ["mail", "print"] == [msgspec.json.decode(one["data"])["queue"] for one in fields(stream.body)[2:]]


@pytest.mark.parametrize("query", ["queue=Mail", "type=nothing", "task_id=1", "shape=mail"])
async def test_a_bad_filter_is_refused_in_the_same_words(query: str) -> None:
    api = StreamApp()

    stream, socket = await api.stream(query), await api.socket(query)

    assert (400, socket.body) == (stream.sent[0]["status"], stream.body)


@pytest.mark.parametrize("given", ["0", "-1", "86401", "nan", "inf", "ten", "", "1_0"])
async def test_a_duration_is_a_number_of_seconds_within_a_day(given: str) -> None:
    api = StreamApp()

    stream = await api.stream(f"seconds={given}")

    problem = msgspec.json.decode(stream.body)
    assert (400, "INVALID_REQUEST") == (stream.sent[0]["status"], problem["code"])
    assert ["seconds"] == [fault["field"] for fault in problem["errors"]]


async def test_a_stream_ends_when_it_was_asked_to() -> None:
    api = StreamApp()
    stream = await api.stream("seconds=2.5")

    await api.pass_time(2 * SECOND)
    assert not stream.life.done()
    await api.pass_time(SECOND / 2)

    assert (True, 0) == (stream.life.done(), api.clients)
    assert False is stream.sent[-1]["more_body"]
    assert not stream.is_aborted


async def test_the_end_of_the_server_ends_the_stream() -> None:
    api = StreamApp()
    stream = await api.stream()

    api.container.fan_out().close()
    await stream.come_to_rest()

    assert (True, False) == (stream.life.done(), stream.sent[-1]["more_body"])


async def test_a_client_that_goes_is_forgotten() -> None:
    api = StreamApp()
    stream = await api.stream()

    stream.hang_up()
    await stream.come_to_rest()

    assert (True, 0, []) == (stream.life.done(), api.clients, api.notes.notices)


async def test_a_client_that_takes_nothing_for_too_long_is_cut_off() -> None:
    api = StreamApp()
    stream = await api.stream()

    stream.clog()
    await api.publish(an_event())
    await api.pass_time(SEND_LIMIT)

    assert (True, True, 0) == (stream.is_aborted, stream.life.done(), api.clients)
    assert [("slow_client_closed", {"ending": "stuck", "peer": "192.0.2.1"})] == api.notes.notices


async def test_a_client_that_does_not_take_the_end_is_cut_off() -> None:
    api = StreamApp()
    stream = await api.stream()

    stream.clog()
    api.container.fan_out().close()
    await api.pass_time(2 * SECOND)

    assert (True, True) == (stream.is_aborted, stream.life.done())


async def test_buffer_and_bound_are_those_of_the_websocket() -> None:
    api = StreamApp({"DTQ_WS_BUFFER": "4", "DTQ_WS_MAX_CLIENTS": "1"})
    stream = await api.stream()
    stream.clog()
    await api.publish(an_event())

    refused = await api.stream()
    for _ in range(5):
        await api.publish(an_event(type=EventType.TASK_FAILED))

    assert (503, "TOO_MANY_CLIENTS") == (refused.sent[0]["status"], msgspec.json.decode(refused.body)["code"])
    assert stream.is_aborted
    assert "overflow" == api.notes.notices[-1][1]["ending"]


async def test_a_page_of_another_host_needs_to_be_allowed_and_may_then_read() -> None:
    foreign = {"origin": "https://other.example"}
    api, open_api = StreamApp(), StreamApp({"DTQ_WS_ALLOWED_ORIGINS": "https://other.example"})

    refused, allowed, own = (
        await api.stream(headers=foreign),
        await open_api.stream(headers=foreign),
        await open_api.stream(),
    )

    assert (403, "ORIGIN_NOT_ALLOWED") == (refused.sent[0]["status"], msgspec.json.decode(refused.body)["code"])
    assert ("https://other.example", "origin") == (
        allowed.headers["access-control-allow-origin"],
        allowed.headers["vary"],
    )
    assert "access-control-allow-origin" not in own.headers


async def test_the_document_names_every_parameter_and_answer() -> None:
    document = StreamApp().app.openapi_schema.to_schema()

    operation = document["paths"]["/api/v1/events"]["get"]

    assert ["queue", "type", "task_id", "seconds"] == [one["name"] for one in operation["parameters"]]
    assert list(EventType) == operation["parameters"][1]["schema"]["items"]["enum"]
    assert {"200", "400", "403", "503"} <= set(operation["responses"])
    assert ["text/event-stream"] == list(operation["responses"]["200"]["content"])
