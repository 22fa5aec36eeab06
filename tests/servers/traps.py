"""Traps on a line to Redis: which messages they wait for, and what becomes of these."""

import threading
from dataclasses import dataclass, field
from enum import Enum, auto


class Then(Enum):
    """What becomes of a message that springs a trap."""

    PASS = auto()
    """It passes; the trap only notices it."""
    STOP = auto()
    """A request is not passed on, and the whole line holds, both ways."""
    STOP_AFTER = auto()
    """A request is carried out, its reply is held, and the whole line with it."""
    CUT = auto()
    """A request is not passed on, and its connection ends."""
    LOSE = auto()
    """A request is carried out, its reply is thrown away, and its connection ends."""
    STALL = auto()
    """A reply passes; from then on requests are held, while replies still pass."""


@dataclass(slots=True, kw_only=True, eq=False)
class Trap:
    """Waits for messages that contain a word; the first *skip* of them do not count.

    ``message`` is the last that was caught, ``reply`` the last that came to a request which passed.
    """

    word: bytes
    then: Then
    in_reply: bool = False
    skip: int = 0
    times: int = 1
    count: int = 0
    message: bytes = b""
    reply: bytes = b""
    _sprung: threading.Event = field(default_factory=threading.Event)
    _answered: threading.Event = field(default_factory=threading.Event)

    @property
    def sprung(self) -> bool:
        """Whether it has caught all that it was set for; what passes may arrive a moment before this is true."""
        return self._sprung.is_set()

    def wait(self, within: float) -> None:
        """Wait until it has caught all that it was set for."""
        assert self._sprung.wait(within), f"no {self.then.name} at {self.word!r} within {within:g} s"

    def wait_for_reply(self, within: float) -> bytes:
        """Wait for the reply to a request that this trap has caught, and return it."""
        assert self._answered.wait(within), f"no reply to {self.word!r} within {within:g} s"
        return self.reply

    def catches(self, message: bytes, *, is_reply: bool) -> bool:
        """Count a message; true where it is one that this trap is set for."""
        if self.sprung or is_reply is not self.in_reply or self.word not in message:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.count += 1
        self.message = message
        return True

    def hear(self, reply: bytes) -> None:
        """Take note of the reply to what was caught."""
        self.reply = reply
        self._answered.set()

    def settle(self) -> None:
        """Let waiters know, once the last message that it was set for has met its fate."""
        if self.count == self.times:
            self._sprung.set()
