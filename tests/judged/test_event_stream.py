"""Judged: clients that vanish or never read cost the others nothing, and the server nothing for long."""

import json
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from dtq.adapters.redis.wire import json_text
from dtq.domain.events import EventType
from dtq.domain.task import TaskId
from tests.factories import an_event
from tests.judged import stream_clients
from tests.judged.sizes import FULL
from tests.judged.system import ROOT, Api, System
from tests.judged.waiting import wait_until
from tests.servers.process import die_with_parent

VANISHING = 500 if FULL else 50
NEVER_READING = 20 if FULL else 5
HEALTHY = 5 if FULL else 3
EVENTS = 100_000 if FULL else 10_000
RATE = 2_000

NOTICED_WITHIN_S = 30.0
BACK_WITHIN_S = 60.0
SPARE_BYTES = 24 * 1024 * 1024
"""How much more memory an allocator may keep for next time."""

KINDS = (EventType.TASK_QUEUED, EventType.TASK_STARTED, EventType.TASK_SUCCEEDED)
TURN_S = 0.01


@contextmanager
def clients(role: str, number: int, url: str, *rest: str) -> Iterator["subprocess.Popen[str]"]:
    """Clients in a process of their own, once all are connected."""
    with subprocess.Popen(
        [sys.executable, "-m", stream_clients.__name__, role, str(number), url, *rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=die_with_parent(),  # noqa: PLW1509 - calls one C function, allocates nothing
    ) as process:
        try:
            assert process.stdout is not None
            assert "ready\n" == process.stdout.readline()
            yield process
        finally:
            process.kill()


class Watch:
    """Looks at handles and memory of a process, again and again."""

    def __init__(self, pid: int) -> None:
        self._proc = Path("/proc") / str(pid)
        self._end = threading.Event()
        self.began_at = time.monotonic()
        self.seen: list[tuple[float, int, int]] = []

    def handles(self) -> int:
        return len(list((self._proc / "fd").iterdir()))

    def memory(self) -> int:
        return int((self._proc / "statm").read_text().split()[1]) * resource.getpagesize()

    def seconds_until(self, holds: Callable[[int], bool]) -> float:
        """After how long the number of handles was for good what *holds* says."""
        wrong = [at for at, handles, _ in self.seen if not holds(handles)]
        return max(wrong, default=0.0)

    def __enter__(self) -> Self:
        threading.Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()

    def _look(self) -> None:
        while not self._end.wait(0.25):
            self.seen.append((time.monotonic() - self.began_at, self.handles(), self.memory()))


def publish(system: System, numbers: Sequence[int]) -> None:
    """Publish events as a step of a task does, RATE a second."""
    began_at = time.monotonic()
    done = 0
    while done < len(numbers):
        due = min(len(numbers), int((time.monotonic() - began_at) * RATE))
        pipeline = system.redis.pipeline(transaction=False)
        for number in numbers[done:due]:
            event = an_event(
                type=KINDS[number % len(KINDS)],
                task_id=TaskId(f"{number // len(KINDS):032x}"),
                task_type="echo",
                attempt=1,
                metadata={"n": number},
            )
            pipeline.publish(system.keys.events, json_text(event))
        pipeline.execute()
        done = due
        time.sleep(TURN_S)


def outcome(healthy: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    assert healthy.stdout is not None
    return [json.loads(healthy.stdout.readline()) for _ in range(HEALTHY)]


def url_of(api: Api) -> str:
    return f"ws://{api.http.base_url.netloc.decode()}/ws/events"


@pytest.mark.timeout(EVENTS / RATE + 240)
def test_healthy_clients_get_every_event_whatever_becomes_of_the_others(system: System) -> None:
    api = system.api()
    url = url_of(api)
    base = Watch(api.pid)
    unwatched = base.handles()
    with clients("healthy", HEALTHY, url, "500") as warm:
        publish(system, range(500))
        outcome(warm)
    # with the subscription, which lingers
    wait_until(lambda: base.handles() <= unwatched + 1, within=5, what="the first clients have gone")
    handles, memory = unwatched + 1, base.memory()

    with (
        clients("silent", NEVER_READING, url),
        clients("silent", VANISHING, url) as vanishing,
        clients("healthy", HEALTHY, url, str(EVENTS)) as healthy,
        Watch(api.pid) as watch,
    ):
        vanishing.send_signal(signal.SIGSTOP)
        publish(system, range(EVENTS))
        results = outcome(healthy)
        wait_until(lambda: watch.handles() <= handles, within=BACK_WITHIN_S, what="handles are back")
        wait_until(lambda: watch.memory() <= memory + SPARE_BYTES, within=BACK_WITHIN_S, what="memory is back")
        vanishing.send_signal(signal.SIGCONT)

    assert [{"came": EVENTS, "in_order": True, "words": ["subscribed"]}] * HEALTHY == results
    assert watch.seconds_until(lambda number: number <= handles + HEALTHY) < NOTICED_WITHIN_S
