"""Answers of handlers that are called as often as tasks are submitted, written without a Response of the framework's.

A Response looks for cookies, encoders and more that is not there, and the arguments that Litestar finds for a handler
take longer than all that is done with them: such a handler returns an application, which reads its request itself.
"""

from http import HTTPStatus
from typing import Final

import msgspec
from litestar.types import Send

from dtq.entrypoints.http.describe import JSON

_encode: Final = msgspec.json.Encoder().encode
_IS_JSON: Final = (b"content-type", JSON.encode())


async def answer_with(body: object, *headers: tuple[bytes, bytes], send: Send, status: HTTPStatus) -> None:
    """Answer with *body* as JSON."""
    text = _encode(body)
    length = (b"content-length", b"%d" % len(text))
    await send({"type": "http.response.start", "status": status.value, "headers": [*headers, _IS_JSON, length]})
    await send({"type": "http.response.body", "body": text, "more_body": False})
