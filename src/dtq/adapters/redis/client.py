"""Connections to one server, and the edge at which the driver's errors become ours.

Nothing here sends a request twice: a reply that was lost may belong to a command that was carried out.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeAlias

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MovedError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from dtq.adapters.redis.connecting import connection_settings, opened
from dtq.adapters.redis.deadlines import Deadlines
from dtq.adapters.redis.subscription import Subscription
from dtq.domain.errors import BrokerOutOfMemory, BrokerRefused, BrokerUnavailable, OutcomeUnknown, RecordUnreadable
from dtq.domain.text import clean
from dtq.ports.backend import OnOperation, unheard

Argument: TypeAlias = str | bytes | int
Reply: TypeAlias = Any
"""What the server answers: text, a number, None, or a list of those; in a pipeline also a Rejected."""

_OUTAGES: Final = frozenset(
    (
        *("LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "NOREPLICAS"),
        *("MISCONF", "OOM", "BUSY", "UNBLOCKED", "NOAUTH", "WRONGPASS"),
    )
)
"""The codes of a server that cannot serve anybody for a while, whatever it is asked for."""

_UNREAD: Final = "Protocol error: unauthenticated"
"""What a server that wants a password answers, without a code of its own, to a request that is long."""

WRONG_TYPE: Final = "WRONGTYPE"
"""The code of a key that a stranger gave another type."""

MAX_CONNECTIONS: Final = 64
MAX_REASON: Final = 200
"""How many characters of a server's error are passed on."""


class Result(StrEnum):
    """How a request to the server ended."""

    OK = "ok"
    REJECTED = "rejected"
    """The server answered with an error. A pipeline that is answered is OK, whatever the answers say."""
    UNSENT = "unsent"
    """There was no connection to send it on."""
    UNKNOWN = "unknown"
    """It was sent, and no answer came."""


class Rejected(BrokerUnavailable):
    """The server answered with an error of the given code, and did nothing of this command."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.reply_code = code


class Refusal(Rejected, BrokerRefused):
    """The same, where the server itself is well: the key, the command or this user is what it does not accept."""


class Misplaced(Refusal, RecordUnreadable):
    """The same, where a stranger's key of another type stands for one of ours."""


class Moved(Rejected):
    """The server is a cluster's, and another one of it serves our slot: there the command may be sent again."""

    def __init__(self, text: str, *, host: str, port: int) -> None:
        super().__init__("MOVED", text)
        self.host = host
        self.port = port


class Request:
    """One command as it is sent, to be made before there is a connection for it."""

    __slots__ = ("command", "packed")

    def __init__(self, command: Sequence[Argument]) -> None:
        self.command: Final = command
        self.packed: Final = _packed(command)


class Client:
    """A bounded set of connections, each used by one request at a time.

    In a cluster all keys are in one slot, so there is one server to talk to: the one that the others name.
    """

    def __init__(self, url: str, *, timeout: timedelta, on_operation: OnOperation = unheard) -> None:
        self.names: Mapping[str, str] = {}
        """What the scripts of these digests are called where operations are counted."""
        self._on_operation = on_operation
        self._kind, self._settings = connection_settings(url, timeout=timeout)
        self._elsewhere: dict[str, Any] = {}
        self._timeout = timeout.total_seconds()
        self._idle: list[AbstractConnection] = []
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._deadlines = Deadlines()

    async def call(self, *command: Argument, block: timedelta = timedelta()) -> Reply:
        """Run one command, which the server may hold back for *block*, and return its reply. Raises Rejected."""
        return await self.send(Request(command), block=block)

    async def send(self, request: Request, *, block: timedelta = timedelta()) -> Reply:
        """Do the same with one that is written already."""
        command = request.command
        name = self.names.get(str(command[1]), "script") if command[0] == "EVALSHA" else str(command[0]).lower()
        (reply,) = await self._counted(name, request.packed, replies=1, block=block)
        if isinstance(reply, BrokerUnavailable):
            raise _named(reply, command)
        return reply

    async def pipeline(self, commands: Sequence[Sequence[Argument]]) -> list[Reply]:
        """Run commands that only read in one trip, each by itself; an error is the reply of its command."""
        if not commands:
            return []
        packed = b"".join(map(_packed, commands))
        return with_our_errors(await self._counted("pipeline", packed, replies=len(commands)), commands)

    @asynccontextmanager
    async def subscribe(self, *channels: str) -> AsyncIterator[AsyncIterator[str]]:
        """Receive what is published on *channels* from the moment the context is entered."""
        connection = self._make()
        try:
            async with asyncio.timeout(self._timeout):
                await opened(connection)
                subscription = Subscription(connection, timeout=self._timeout)
                await subscription.begin(channels)
            self._on_operation("subscribe", Result.OK)
            yield subscription
        except (RedisError, OSError) as error:
            self._on_operation("subscribe", Result.UNSENT)
            raise _failure(error, was_sent=False) from error
        finally:
            await connection.disconnect(nowait=True)

    async def close(self) -> None:
        """Let go of every connection that is not in use."""
        while self._idle:
            await self._idle.pop().disconnect()

    async def _counted(
        self, operation: str, packed: bytes, *, replies: int, block: timedelta = timedelta()
    ) -> list[Reply]:
        # what is canceled on its way may have been carried out
        result = Result.UNKNOWN
        try:
            answers = await self._exchange(packed, replies=replies, block=block)
            for answer in answers:
                if isinstance(answer, Moved):
                    await self._move(answer)
                    answers = await self._exchange(packed, replies=replies, block=block)
                    break
            result = Result.REJECTED if replies == 1 and isinstance(answers[0], BrokerUnavailable) else Result.OK
            return answers
        except BrokerUnavailable as error:
            result = Result.UNKNOWN if isinstance(error, OutcomeUnknown) else Result.UNSENT
            raise
        finally:
            self._on_operation(operation, result)

    async def _move(self, to: Moved) -> None:
        self._elsewhere = {"host": to.host, "port": to.port} if to.host else {"port": to.port}
        await self.close()

    async def _exchange(self, packed: bytes, *, replies: int, block: timedelta) -> list[Reply]:
        was_sent = False
        try:
            with self._deadlines.within(self._timeout + block.total_seconds()):
                await self._slots.acquire()
                try:
                    connection = await self._connected()
                    was_sent = True
                    await connection.send_packed_command([packed], check_health=False)
                    answers = await _read(connection, replies)
                    for answer in answers:
                        if isinstance(answer, Rejected):
                            # after a failover this may be a replica now, and the name lead to another server
                            await connection.disconnect(nowait=True)
                            return answers
                    self._idle.append(connection)
                    return answers
                finally:
                    self._slots.release()
        except (RedisError, OSError) as error:
            # a server of a cluster that is gone cannot tell who took its place: ask the one of the URL again
            self._elsewhere = {}
            raise _failure(error, was_sent=was_sent) from error

    async def _connected(self) -> AbstractConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_connected and not await connection.can_read():
                return connection
            # closed by the server, or with a reply that nobody waits for
            await connection.disconnect(nowait=True)
        return await opened(self._make())

    def _make(self) -> AbstractConnection:
        return self._kind(**(self._settings | self._elsewhere))


def _packed(command: Sequence[Argument]) -> bytes:
    packed: bytes = pack_command(tuple(command))  # type: ignore[arg-type]  # hiredis declares a tuple of one
    return packed


async def _read(connection: AbstractConnection, replies: int) -> list[Reply]:
    answers: list[Reply] = []
    for _ in range(replies):
        try:
            answers.append(await connection.read_response())
        except ResponseError as error:
            answers.append(translated(error))
    return answers


def checked(reply: Reply) -> Reply:
    """Return a reply that is no error, and raise one that is."""
    if isinstance(reply, BrokerUnavailable):
        raise reply
    return reply


def with_our_errors(replies: Sequence[Reply], commands: Sequence[Sequence[Argument]]) -> list[Reply]:
    """Return the replies to *commands*, with our errors in place of the driver's."""
    return [
        _named(reply, command) if isinstance(reply, (ResponseError, BrokerUnavailable)) else reply
        for reply, command in zip(replies, commands, strict=True)
    ]


def _named(error: ResponseError | BrokerUnavailable, command: Sequence[Argument]) -> BrokerUnavailable:
    """Return our error for an answer to *command*; of a key of another type, with its name where it has but one."""
    known = translated(error) if isinstance(error, ResponseError) else error
    if not isinstance(known, Misplaced) or command[0] == "EVALSHA":
        return known
    key = command[2] if command[0] in ("XINFO", "XGROUP") else command[1]
    return Misplaced(WRONG_TYPE, f"key {clean(str(key), limit=MAX_REASON)} is of another type than dtq keeps there")


def translated(error: ResponseError) -> BrokerUnavailable:
    """Return our error for an answer of the server, without the arguments that it may repeat."""
    text = clean(str(error).partition(", with args")[0], limit=MAX_REASON)
    known = getattr(error, "status_code", None) or text.partition(" ")[0]
    code = "NOAUTH" if text.startswith(_UNREAD) else str(known)
    if isinstance(error, MovedError):
        return Moved(f"the broker refuses: {text}", host=error.host, port=error.port)
    if isinstance(error, OutOfMemoryError):
        return BrokerOutOfMemory(f"the broker's memory is full: {text}")
    return rejection(code, f"the broker refuses: {text}")


def rejection(code: str, text: str) -> Rejected:
    """Return the error of a server that answered *code*: an outage of the whole, or the refusal of one request."""
    if code == WRONG_TYPE:
        return Misplaced(code, text)
    return Rejected(code, text) if code in _OUTAGES else Refusal(code, text)


def _failure(error: Exception, *, was_sent: bool) -> BrokerUnavailable:
    if isinstance(error, (BusyLoadingError, AuthenticationError)):
        return BrokerUnavailable(f"the broker refuses: {clean(str(error), limit=MAX_REASON)}")
    if isinstance(error, ResponseError):
        return translated(error)
    what = f"the connection to the broker failed: {clean(str(error), limit=MAX_REASON)}"
    if isinstance(error, TimeoutError):
        what = "no answer of the broker in time"
    return OutcomeUnknown(what) if was_sent else BrokerUnavailable(what)
