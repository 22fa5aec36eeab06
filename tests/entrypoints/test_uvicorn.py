"""What is built on uvicorn's insides finds them: with a uvicorn that has changed, this tells first what is missing."""

import asyncio
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from dtq.entrypoints.api import uvicorn_config
from dtq.entrypoints.http.bounded_http import BoundedHttp
from dtq.entrypoints.http.stream_protocol import StreamHttp, StreamSocket

HTTP = ("cycle", "flow", "loop", "scope", "server_state", "transport")
SOCKET = ("close_sent", "conn", "disconnected", "handshake_complete", "loop", "queue", "transport", "writable")


async def application(scope: object, receive: object, send: object) -> None:
    raise AssertionError("nobody asks", scope, receive, send)


def config() -> uvicorn.Config:
    made = uvicorn_config(application)
    made.load()
    return made


@pytest.mark.parametrize(
    ("ours", "base"),
    [(BoundedHttp, HttpToolsProtocol), (StreamHttp, HttpToolsProtocol), (StreamSocket, WebSocketsSansIOProtocol)],
)
async def test_what_we_override_is_there_and_what_we_add_is_not(ours: type[Any], base: type[Any]) -> None:
    theirs = {*dir(base), *vars(base(config(), ServerState(), {}))}
    methods = {name for name, value in vars(ours).items() if callable(value)}

    assert set() == {name for name in methods if not name.startswith("_")} - theirs
    assert set() == {name for name in vars(ours) if re.match(r"_[a-z]", name)} & theirs


@pytest.mark.parametrize(("base", "names"), [(HttpToolsProtocol, HTTP), (WebSocketsSansIOProtocol, SOCKET)])
async def test_what_we_look_at_is_there(base: type[Any], names: tuple[str, ...]) -> None:
    assert set() == set(names) - set(vars(base(config(), ServerState(), {})))


async def test_what_we_look_at_of_a_request_is_there() -> None:
    transport = asyncio.Transport()
    flow = FlowControl(transport)
    rest: Any = dict.fromkeys(("logger", "access_logger", "on_response"))
    cycle = RequestResponseCycle(
        scope={},  # type: ignore[typeddict-item]  # nothing of it is read
        transport=transport,
        flow=flow,
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=True,
        **rest,
    )

    assert (False, False, False) == (cycle.response_started, cycle.response_complete, flow.read_paused)


def test_only_minor_versions_that_were_tried_are_allowed() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
    [pinned] = [one for one in project["dependencies"] if one.startswith("uvicorn")]
    tried = int(version("uvicorn").split(".")[1])

    assert pinned.endswith(f",<0.{tried + 1}")
