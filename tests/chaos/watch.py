"""Watchers: clients of the event stream, one for each API, which connect again whenever they are let go."""

import threading
import time
from typing import Any, Final

import msgspec
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from dtq.application.fan_out_tap import Control, Ending, Message
from dtq.domain.events import Event
from tests.simulation.history import History, Watch

AGAIN_S: Final = 0.3
POLL_S: Final = 0.5
GOING_AWAY: Final = 1001
CUT: Final = "cut"

_events: Final = msgspec.json.Decoder(Event)
_words: Final = msgspec.json.Decoder(Control)


class Watcher:
    """Listens to one API until it is told to stop; each connection is a watch of its own."""

    def __init__(self, name: str, *, url: str, history: History, begin: float) -> None:
        self._name = name
        self._url = url
        self._history = history
        self._begin = begin
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no longer."""
        self._stop.set()
        self._thread.join()

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.time() - self._begin

    def _listen(self) -> None:
        while not self._stop.is_set():
            watch = Watch(who=self._name, since=self.now)
            try:
                with connect(self._url, max_size=None, ping_interval=None) as client:
                    self._history.watches.append(watch)
                    while not self._stop.is_set():
                        self._hear(client, watch)
            except ConnectionClosed as error:
                code = None if error.rcvd is None else error.rcvd.code
                watch.ending = Ending.SHUTDOWN.value if code == GOING_AWAY else CUT
            except (OSError, InvalidHandshake, EOFError):
                watch.ending = watch.ending or CUT
                self._stop.wait(AGAIN_S)
            watch.until = self.now

    def _hear(self, client: Any, watch: Watch) -> None:
        try:
            text = client.recv(POLL_S)
        except TimeoutError:
            return
        is_word = "control" in msgspec.json.decode(text)
        message: Message = _words.decode(text) if is_word else _events.decode(text)
        watch.heard.append((self.now, message))
