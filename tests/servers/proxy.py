"""A TCP line to a Redis, in a test's hands: it delays, holds, cuts and loses what passes, message by message.

A message is one request of a client, or one reply. Traps wait for a message that contains a word, so that a process can
be stopped exactly before or after one step of its own.
"""

import contextlib
import socket
import threading
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from tests.servers.process import LOOPBACK
from tests.servers.resp import Messages
from tests.servers.traps import Then, Trap

__all__ = ["Proxy", "Then", "Trap"]

CHUNK = 65_536
REDIS_PORT = 6379
NAME_WITHIN = 30
"""The name of a request's command is among so many first bytes."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Connection:
    client: socket.socket
    server: socket.socket
    asked: deque[Trap | None] = field(default_factory=deque)
    is_subscription: bool = False
    is_dead: bool = False

    def end(self) -> None:
        self.is_dead = True
        for side in (self.client, self.server):
            # it may be closed already, by its own side
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


class Proxy:
    """A line to the server of a URL; give ``url`` to those who shall use it. A context manager."""

    def __init__(self, url: str) -> None:
        self._target = _address(url)
        self._listener = socket.create_server((LOOPBACK, 0))
        self.url = _moved(url, port=self._listener.getsockname()[1])
        self._state = threading.Condition()
        self._closed = threading.Event()
        self._delay = 0.0
        self._holds_requests = False
        self._holds_replies = False
        self._refuses = False
        self._traps: list[Trap] = []
        self._connections: list[_Connection] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def delay(self, seconds: float) -> None:
        """Make each message take so much longer, either way; 0 ends that."""
        self._delay = seconds

    def hold(self, *, requests: bool = True, replies: bool = True) -> None:
        """Fall silent: connections stay open, new ones are accepted, nothing passes. ``heal`` passes it on."""
        with self._state:
            self._holds_requests, self._holds_replies = requests, replies

    def cut(self) -> None:
        """End every connection; what was held of them is thrown away. New ones are accepted."""
        with self._state:
            for connection in self._connections:
                connection.end()
            self._connections.clear()
            self._state.notify_all()

    def refuse(self) -> None:
        """End every connection, and each new one at once, until ``heal``."""
        self._refuses = True
        self.cut()

    def release(self) -> None:
        """Pass on what is held and all that comes, until the next trap springs."""
        with self._state:
            self._holds_requests = self._holds_replies = False
            self._state.notify_all()

    def heal(self) -> None:
        """Pass on what is held and all that comes, undelayed, and take every trap away."""
        self._delay = 0.0
        self._refuses = False
        with self._state:
            self._traps.clear()
        self.release()

    def point_to(self, url: str) -> None:
        """Lead new connections to another server, and end those to the old one."""
        self._target = _address(url)
        self.cut()

    def trap(self, word: bytes, *, then: Then, in_reply: bool = False, skip: int = 0, times: int = 1) -> Trap:
        """Set a trap for requests that contain *word*, or for replies that do."""
        if then is not Then.PASS and in_reply is not (then is Then.STALL):
            raise ValueError(f"{then.name} is set for {'requests' if in_reply else 'replies'} only")
        trap = Trap(word=word, then=then, in_reply=in_reply, skip=skip, times=times)
        with self._state:
            self._traps.append(trap)
        return trap

    def watch(self, word: bytes, *, in_reply: bool = False, skip: int = 0, times: int = 1) -> Trap:
        """Notice messages that contain *word*, and do nothing to them."""
        return self.trap(word, then=Then.PASS, in_reply=in_reply, skip=skip, times=times)

    def stop_before(self, word: bytes, *, skip: int = 0) -> Trap:
        """Hold the line at a request that contains *word*: it has not been carried out."""
        return self.trap(word, then=Then.STOP, skip=skip)

    def stop_after(self, word: bytes, *, skip: int = 0) -> Trap:
        """Hold the line at the reply to a request that contains *word*: it has been carried out."""
        return self.trap(word, then=Then.STOP_AFTER, skip=skip)

    def drop_requests(self, times: int = 1, *, word: bytes = b"", skip: int = 0) -> Trap:
        """End the connection instead of passing on a request that contains *word*, so many times."""
        return self.trap(word, then=Then.CUT, skip=skip, times=times)

    def drop_replies(self, times: int = 1, *, word: bytes = b"", skip: int = 0) -> Trap:
        """Have a request that contains *word* carried out, and end its connection instead of the reply."""
        return self.trap(word, then=Then.LOSE, skip=skip, times=times)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        with contextlib.suppress(OSError):
            # wakes the thread that accepts
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.refuse()
        self.heal()

    def _accept(self) -> None:
        # the listener's end is how this thread is told to stop
        with contextlib.suppress(OSError):
            while not self._closed.is_set():
                client, _ = self._listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            if self._refuses:
                raise ConnectionRefusedError
            server = socket.create_connection(self._target)
        except OSError:
            # as if nobody listened here either
            client.close()
            return
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(client=client, server=server)
        with self._state:
            self._connections.append(connection)
        threading.Thread(target=self._pump, args=(connection, False), daemon=True).start()
        threading.Thread(target=self._pump, args=(connection, True), daemon=True).start()

    def _pump(self, connection: _Connection, is_reply: bool) -> None:  # noqa: FBT001 - a thread's argument
        source = connection.server if is_reply else connection.client
        target = connection.client if is_reply else connection.server
        messages = Messages()
        # either side may hang up at any time, which ends the line between them
        with contextlib.suppress(OSError), source:
            while data := source.recv(CHUNK):
                if self._delay:
                    self._closed.wait(self._delay)
                for message in messages.feed(data):
                    trap = self._reply(connection, message) if is_reply else self._request(connection, message)
                    if connection.is_dead:
                        return
                    target.sendall(message)
                    if trap is not None:
                        trap.settle()
            target.shutdown(socket.SHUT_WR)

    def _request(self, connection: _Connection, message: bytes) -> Trap | None:
        """Wait until a request may pass; return the trap that springs once it has."""
        with self._state:
            trap = self._caught(message, is_reply=False)
            if trap is not None and trap.then is Then.STOP:
                self._holds_requests = self._holds_replies = True
                trap.settle()
            if trap is not None and trap.then is Then.CUT:
                trap.settle()
                connection.end()
            self._state.wait_for(lambda: connection.is_dead or not self._holds_requests)
            connection.is_subscription |= b"SUBSCRIBE" in message[:NAME_WITHIN].upper()
            connection.asked.append(trap)
        return trap if trap is not None and trap.then is Then.PASS else None

    def _reply(self, connection: _Connection, message: bytes) -> Trap | None:
        """Wait until a reply may pass; return the trap that springs once it has."""
        with self._state:
            heard = self._caught(message, is_reply=True)
            if heard is not None and heard.then is Then.STALL:
                # before the reply passes: its reader may ask for more at once
                self._holds_requests |= heard.count == heard.times
                heard.settle()
            # what is pushed answers no request
            is_answer = not connection.is_subscription and not message.startswith(b">")
            trap = connection.asked.popleft() if is_answer and connection.asked else None
            if trap is not None:
                trap.hear(message)
            if trap is not None and trap.then is Then.STOP_AFTER:
                self._holds_requests = self._holds_replies = True
                trap.settle()
            if trap is not None and trap.then is Then.LOSE:
                trap.settle()
                connection.end()
            self._state.wait_for(lambda: connection.is_dead or not self._holds_replies)
        return heard

    def _caught(self, message: bytes, *, is_reply: bool) -> Trap | None:
        return next((trap for trap in self._traps if trap.catches(message, is_reply=is_reply)), None)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or LOOPBACK, parts.port or REDIS_PORT


def _moved(url: str, *, port: int) -> str:
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    place = f"{LOOPBACK}:{port}"
    return urlunsplit(parts._replace(netloc=f"{login}@{place}" if login else place))
