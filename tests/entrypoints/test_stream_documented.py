"""docs/events.md says what the code does: types, members, when they are set, examples, words, codes and bounds."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dtq.application.fan_out import LINGER
from dtq.application.fan_out_buffer import CRITICAL
from dtq.application.fan_out_filter import MAX_VALUES, PARAMETERS
from dtq.application.fan_out_tap import ControlKind, Reason
from dtq.domain.change import Change
from dtq.domain.events import Event, EventType, pause_event, worker_event
from dtq.domain.status import TaskStatus
from dtq.entrypoints.config import Settings
from dtq.entrypoints.http.stream_delivery import HEARTBEAT, SEND_LIMIT
from dtq.entrypoints.http.stream_events import MAX_SECONDS
from dtq.entrypoints.http.stream_protocol import GRACE, PING_EVERY, PONG_WITHIN
from dtq.entrypoints.http.stream_socket import CLOSE_CODES
from dtq.ports.backend import BackendOptions
from tests.contract.kinds import KINDS, prepared
from tests.contract.memory_harness import open_harness
from tests.factories import NOW, QUEUE, WORKER

PAGE = (Path(__file__).resolve().parents[2] / "docs/events.md").read_text()
FLAT = " ".join(PAGE.split())
PING_NOT_ANSWERED = 1011


def rows(section: str) -> dict[str, list[str]]:
    """The first table of a section: what its rows begin with, without quotes, and the other cells."""
    text = PAGE.partition(f"\n{section}\n")[2]
    lines = text[text.index("\n|") + 1 :].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def examples() -> list[bytes]:
    block = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    return block[1].encode().splitlines()


class Seen:
    """What the code was seen to say in events of one type."""

    def __init__(self) -> None:
        self.statuses: set[str] = set()
        self.has_worker: set[bool] = set()
        self.metadata: set[str] = set()

    def add(self, event: Event, status: TaskStatus | None) -> None:
        self.statuses |= set() if status is None else {status.value}
        self.has_worker.add(event.worker_id is not None)
        self.metadata |= set(event.metadata or {})

    @property
    def cells(self) -> list[str]:
        """What the table should say."""
        presence = "sometimes" if len(self.has_worker) > 1 else "always" if True in self.has_worker else "never"
        return [" ".join(self.statuses), presence, ", ".join(sorted(self.metadata, reverse=True))]


async def changes() -> Sequence[Change]:
    """A change of every kind that there is."""
    found = []
    for kind in KINDS:
        async with open_harness(options=BackendOptions()) as harness:
            found.append(await prepared(harness, kind))
    return found


async def seen_in_the_code() -> Mapping[EventType, Seen]:
    seen: dict[EventType, Seen] = {}
    for change in await changes():
        if change.event is not None:
            seen.setdefault(change.event.type, Seen()).add(change.event, change.after.status)
    for kind in (EventType.WORKER_STARTED, EventType.WORKER_STOPPED, EventType.WORKER_STALE):
        event = worker_event(kind, event_id="1", at=NOW, worker=WORKER, queue=QUEUE)
        seen.setdefault(kind, Seen()).add(event, None)
    pause = pause_event(QUEUE, event_id="1", at=NOW, paused=True)
    seen.setdefault(pause.type, Seen()).add(pause, None)
    return seen


def test_every_member_is_there_in_its_order() -> None:
    assert list(Event.__struct_fields__) == list(rows("## What an event is"))


def test_a_member_that_may_be_null_is_said_to_be() -> None:
    optional = {field.name for field in msgspec.structs.fields(Event) if not field.required}

    assert optional == {name for name, (kind, _) in rows("## What an event is").items() if kind.endswith("or null")}


def test_every_type_is_there_in_its_order() -> None:
    assert sorted(EventType) == sorted(rows("## Types"))


async def test_each_type_says_what_the_code_does() -> None:
    seen = await seen_in_the_code()
    told = {name: [cell.replace("`", "") for cell in cells[1:4]] for name, cells in rows("## Types").items()}
    # the adapters make this one, where they remove the entry
    absorbed = told.pop(EventType.DUPLICATE_ABSORBED)

    assert {kind: one.cells for kind, one in seen.items()} == told
    assert ["", "always", ""] == absorbed


def test_the_critical_ones_are_marked() -> None:
    marked = {name: cells[4] for name, cells in rows("## Types").items()}

    assert {kind: "yes" if kind in CRITICAL else "" for kind in EventType} == marked


async def test_every_change_of_status_has_an_event() -> None:
    for change in await changes():
        before = None if change.before is None else change.before.status
        has_changed = before is not change.after.status and change.after.status is not TaskStatus.PENDING
        # a redelivery and a cancel request change no status, and are told of all the same
        assert change.event is not None or not has_changed, change


def test_there_is_an_example_of_each_type_in_the_order_of_the_table() -> None:
    assert list(rows("## Types")) == [msgspec.json.decode(line)["type"] for line in examples()]


@pytest.mark.parametrize("line", examples(), ids=lambda line: msgspec.json.decode(line)["type"])
def test_an_example_is_what_the_code_would_say(line: bytes) -> None:
    members: dict[str, Any] = msgspec.json.decode(line)
    event = msgspec.json.decode(line, type=Event)
    _, _, has_worker, metadata, _ = rows("## Types")[event.type]

    assert list(Event.__struct_fields__) == list(members)
    assert set(event.metadata or {}) <= {name.strip(" `") for name in metadata.split(",")}
    assert has_worker == "sometimes" or (has_worker == "always") is (event.worker_id is not None)
    assert event.type.startswith(("TASK_", "task.")) is (event.task_id is not None)


def test_every_word_about_the_stream_is_there() -> None:
    words = rows("## Listening")

    assert list(ControlKind) == list(words)
    assert all(f"`{reason}`" in words["gap"][0] for reason in Reason)


def test_every_close_code_is_there() -> None:
    codes = {code for code, _ in CLOSE_CODES.values()} | {PING_NOT_ANSWERED}

    assert codes == {int(code) for code in rows("### WebSocket")}


def test_every_filter_is_there() -> None:
    *others, last = (f"`{name}`" for name in PARAMETERS)

    assert f"{', '.join(others)} and {last}, up to {MAX_VALUES} values each" in FLAT


@pytest.mark.parametrize(
    "sentence",
    [
        f"nothing has happened for {HEARTBEAT.seconds} seconds",
        f"pings every {PING_EVERY.seconds} seconds",
        f"lets a client go that has not answered {PONG_WITHIN.seconds} seconds later",
        f"longer than {SEND_LIMIT.seconds} seconds for what it is being sent",
        f"{GRACE.seconds} seconds after it was sent the connection is cut",
        f"while there is a client, and {LINGER.seconds} seconds longer",
        f"`DTQ_WS_BUFFER` messages ({Settings().ws_buffer})",
        f"`DTQ_WS_MAX_CLIENTS` clients ({Settings().ws_max_clients})",
        f"(up to {MAX_SECONDS})",
        "there is no replay",
    ],
)
def test_the_figures_are_those_of_the_code(sentence: str) -> None:
    assert sentence in FLAT
