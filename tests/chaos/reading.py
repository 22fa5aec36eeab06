"""What servers, handlers, watchers and processes wrote down, read when all is over."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from dtq.domain.events import Event, EventType
from tests.chaos import handlers
from tests.chaos.aof import read_base, read_blocks
from tests.chaos.deployment import Deployment
from tests.chaos.replay import Replay
from tests.simulation.history import Execution, History, Notice, Step

NOTICED: Final = ("loop_failed", "beat_failed", "recording_failed")
"""What processes tell of themselves that the checkers want to know."""


def followed(deployment: Deployment, history: History, begin: float) -> Iterator[Replay]:
    """Follow each server's own file; where another one begins, so do the tasks."""
    for folder in deployment.eras:
        replay = Replay(deployment.system.keys, begin=begin)
        for block in read_base(folder):
            # what it begins with are no steps of this era
            list(replay.follow(block))
        for block in read_blocks(folder):
            for one in replay.follow(block):
                if isinstance(one, Step):
                    replay.steps.append(one)
                else:
                    history.sweeps.append(one)
        history.steps += replay.steps
        if replay.wiped_at is not None:
            history.wiped_at = replay.wiped_at
        yield replay


def executions_of(deployment: Deployment, begin: float) -> Iterator[Execution]:
    """Read what handlers have counted: a line at each begin, one at each end."""
    path = handlers.store_of(deployment.system.journal.path)
    running: dict[tuple[str, int, str], Execution] = {}
    for text in path.read_text().splitlines() if path.exists() else ():
        line: dict[str, Any] = json.loads(text)
        outcome, at = line.pop("outcome"), line.pop("at") - begin
        of = (line["task_id"], line["attempt"], line["who"])
        if not outcome:
            running[of] = Execution(at=at, **line)
            yield running[of]
        else:
            running[of].outcome, running[of].ended_at = outcome, at


def told_of(history: History) -> dict[str, int]:
    """How often the watcher that heard most of each step's event heard it."""
    heard = Counter(
        (watch.who, message.event_id)
        for watch in history.watches
        for _, message in watch.heard
        if isinstance(message, Event) and message.task_id and message.type is not EventType.DUPLICATE_ABSORBED
    )
    told: dict[str, int] = {}
    for (_, event_id), times in heard.items():
        told[event_id] = max(times, told.get(event_id, 0))
    return told


def notices_of(deployment: Deployment, begin: float) -> Iterator[Notice]:
    """Read what processes told of loops that failed and of what they could not record."""
    for name, text in deployment.logs().items():
        for line in text.splitlines():
            if any(word in line for word in NOTICED):
                try:
                    told = json.loads(line)
                except ValueError:
                    # its process was killed while it wrote
                    continue
                at = datetime.fromisoformat(told["timestamp"]).timestamp() - begin
                yield Notice(at, name, told["event"], told)
