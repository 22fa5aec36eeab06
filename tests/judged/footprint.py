"""What Redis holds of a deployment, in a form that two moments can be compared by."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from dtq.domain.admission import DEFAULT_QUEUE
from tests.judged.system import System
from tests.judged.waiting import wait_until

SIGNS_OF_LIFE = ("worker:", "workers", "lock:")


def dumps(system: System, *, match: str) -> dict[str, object]:
    """Every key that matches, with its value as Redis would store it."""
    raw = system.raw_redis
    return {key.decode(): raw.dump(key) for key in sorted(raw.scan_iter(match=match, count=1000))}


def footprint(system: System) -> dict[str, object]:
    """Everything that is kept of tasks: of streams their entries and who holds them, not since when."""
    found: dict[str, object] = {}
    for key, value in dumps(system, match=f"{system.prefix}:*").items():
        name = key.removeprefix(f"{system.prefix}:")
        if name.startswith(SIGNS_OF_LIFE):
            continue
        found[name] = system.redis.xrange(key) if system.redis.type(key) == "stream" else value
    for stream in system.keys.streams(DEFAULT_QUEUE):
        found[f"owners of {stream}"] = owners(system, stream)
    return found


def owners(system: System, stream: str) -> dict[str, str]:
    """Which worker holds which entry of a stream."""
    if not system.redis.exists(stream):
        return {}
    pending = system.redis.xpending_range(stream, "workers", "-", "+", 1000)
    return {entry["message_id"]: entry["consumer"] for entry in pending}


class Events:
    """The events of a deployment, as a subscriber hears them."""

    def __init__(self, subscription: Any) -> None:
        self._subscription = subscription
        self._heard: list[dict[str, Any]] = []

    def of(self, task_id: str) -> list[str]:
        """The types of a task's events so far, each with the attempt it tells of."""
        while (message := self._subscription.get_message(ignore_subscribe_messages=True)) is not None:
            self._heard.append(msgspec.json.decode(message["data"]))
        return [f"{event['type']} {event['attempt']}" for event in self._heard if event["task_id"] == task_id]


@contextmanager
def listening(system: System) -> Iterator[Events]:
    """Hear every event from now on."""
    subscription = system.redis.pubsub()
    try:
        subscription.subscribe(system.keys.events)
        wait_until(lambda: subscription.get_message(timeout=1) is not None, within=5, what="the subscription stands")
        yield Events(subscription)
    finally:
        subscription.close()
