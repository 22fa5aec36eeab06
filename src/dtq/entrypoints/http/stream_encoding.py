"""Events and words about the stream as bytes: made once for all clients that read the same form."""

from typing import Final

import msgspec

from dtq.application.fan_out_tap import Control, ControlKind, Message

_encode: Final = msgspec.json.Encoder().encode

_TEXT_FRAME: Final = 0x81
"""The first byte of a frame that is a whole text message (RFC 6455, section 5.2)."""
_SHORT: Final = 126
_MEDIUM: Final = 65_536


def as_text(message: Message) -> bytes:
    """Write a message as JSON, on one line."""
    return _encode(message)


def as_frame(message: Message) -> bytes:
    """Write a message as a WebSocket frame, which is the same for every client: a server's frames are not masked."""
    text = _encode(message)
    size = len(text)
    if size < _SHORT:
        header = bytes((_TEXT_FRAME, size))
    elif size < _MEDIUM:
        header = bytes((_TEXT_FRAME, _SHORT)) + size.to_bytes(2)
    else:
        header = bytes((_TEXT_FRAME, _SHORT + 1)) + size.to_bytes(8)
    return header + text


def as_chunk(message: Message) -> bytes:
    """Write a message for an EventSource: an event unnamed, a word about the stream named `control`."""
    if not isinstance(message, Control):
        return b"data: " + _encode(message) + b"\n\n"
    if message.control is ControlKind.HEARTBEAT:
        return b": heartbeat\n\n"
    return b"event: control\ndata: " + _encode(message) + b"\n\n"
