import msgspec
import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame
from websockets.protocol import State
from websockets.uri import parse_uri

from dtq.application.fan_out_tap import Control, ControlKind, Reason
from dtq.entrypoints.http.stream_encoding import as_chunk, as_frame, as_text
from tests.factories import NOW, an_event


@pytest.mark.parametrize("size", [1, 10, 60_000, 70_000])
def test_a_frame_is_what_a_websocket_client_reads_as_one_text(size: int) -> None:
    event = an_event(task_type="x" * size)
    client = ClientProtocol(parse_uri("ws://dtq.example/"), state=State.OPEN)

    client.receive_data(as_frame(event) * 2)

    frames = client.events_received()
    assert [as_text(event)] * 2 == [bytes(frame.data) for frame in frames if isinstance(frame, Frame)]
    assert None is client.parser_exc


def test_the_shortest_header_is_used() -> None:
    beat = Control(control=ControlKind.HEARTBEAT, ts=NOW)

    assert bytes([0x81, len(as_text(beat))]) + as_text(beat) == as_frame(beat)


def test_a_word_about_the_stream_has_no_member_that_does_not_apply() -> None:
    gap = Control(control=ControlKind.GAP, ts=NOW, reason=Reason.SLOW_CLIENT, dropped=3)
    beat = Control(control=ControlKind.HEARTBEAT, ts=NOW)

    assert b'{"control":"gap","ts":"2026-01-01T12:00:00Z","reason":"slow_client","dropped":3}' == as_text(gap)
    assert b'{"control":"heartbeat","ts":"2026-01-01T12:00:00Z"}' == as_text(beat)


def test_a_chunk_is_one_block_whatever_the_event_holds() -> None:
    event = an_event(task_type="a\nb\n\nc\rd\u2028")

    chunk = as_chunk(event)

    assert (1, 0) == (chunk.count(b"\n\n"), chunk.count(b"\r"))
    assert msgspec.to_builtins(event) == msgspec.json.decode(chunk.removeprefix(b"data: "))
