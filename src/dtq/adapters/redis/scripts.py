"""The Lua scripts: their texts, and how one is run."""

from collections.abc import Sequence
from hashlib import sha1
from importlib.resources import files
from typing import Final

from msgspec import Struct

from dtq.adapters.redis.client import Argument, Client, Rejected, Reply, Request
from dtq.adapters.redis.clock import RedisClock
from dtq.adapters.redis.codec import SNAPSHOT
from dtq.adapters.redis.shortened import NAMES

_WRITTEN_OUT: Final = {"the fields of a snapshot": SNAPSHOT, "the fields of an entry": NAMES}
"""What stands for lists of names in the scripts: each that is sent, or read from a list, costs the server more."""


class Script(Struct, frozen=True, kw_only=True):
    """A script and the digest that a server knows it by once it has seen it; ``name`` is what people call it."""

    name: str
    text: str
    digest: str


def script(text: str, *, name: str = "script") -> Script:
    """Name a script's text."""
    return Script(name=name, text=text, digest=sha1(text.encode(), usedforsecurity=False).hexdigest())


def _shipped(name: str, *, allow_oom: bool, called: str = "", uses: Sequence[str] = ()) -> Script:
    """Read one of our scripts, with those that it uses; *allow_oom* lets it run when memory is full."""
    first_line = "#!lua flags=allow-oom\n" if allow_oom else "#!lua\n"
    functions = [f"local function {used}(KEYS, ARGV)\n{_text(used)}end\n" for used in uses]
    return script(first_line + "".join(functions) + _text(name), name=called or name)


def _text(name: str) -> str:
    text = files("dtq.adapters.redis").joinpath("lua", f"{name}.lua").read_text("utf-8")
    for placeholder, fields in _WRITTEN_OUT.items():
        text = text.replace(f"'{placeholder}'", ", ".join([f"'{field}'" for field in fields]))
    return text


COMMIT: Final = _shipped("commit", allow_oom=True)
ADMIT: Final = _shipped("commit", allow_oom=False, called="admit")
"""The same script, which a server without memory refuses before its first write."""
FETCH: Final = _shipped("fetch", allow_oom=True)
TURN: Final = _shipped("turn", allow_oom=True, uses=("commit", "fetch"))
EXTEND: Final = _shipped("extend", allow_oom=True)
TAKE_DUE: Final = _shipped("take_due", allow_oom=True)
PEEK: Final = _shipped("peek", allow_oom=True)
SUSPECTS: Final = _shipped("suspects", allow_oom=True)
LACKING: Final = _shipped("lacking", allow_oom=True)
RUN: Final = _shipped("run", allow_oom=True)
PERMITS: Final = _shipped("permits", allow_oom=True)

ALL: Final = (COMMIT, ADMIT, FETCH, TURN, EXTEND, TAKE_DUE, PEEK, SUSPECTS, LACKING, RUN, PERMITS)


class ScriptCall:
    """A script with the request that has it run."""

    __slots__ = ("request", "script")

    def __init__(self, wanted: Script, *, keys: Sequence[str], arguments: Sequence[Argument]) -> None:
        self.script: Final = wanted
        self.request: Final = Request(("EVALSHA", wanted.digest, len(keys), *keys, *arguments))


class Scripts:
    """Runs scripts on a server, and learns its time from their replies."""

    def __init__(self, client: Client, *, clock: RedisClock) -> None:
        self._client = client
        self._clock = clock
        client.names = {known.digest: known.name for known in ALL}

    async def load(self) -> None:
        """Make every script known to the server."""
        for known in ALL:
            await self._client.call("SCRIPT", "LOAD", known.text)

    async def run(self, wanted: Script, *, keys: Sequence[str], arguments: Sequence[Argument]) -> Sequence[Reply]:
        """Run a script and return its reply, the leading time taken off."""
        return await self.carry_out(ScriptCall(wanted, keys=keys, arguments=arguments))

    async def carry_out(self, asked: ScriptCall) -> Sequence[Reply]:
        """Do the same with one whose request is written already."""
        sent = self._clock.monotonic()
        try:
            reply = await self._client.send(asked.request)
        except Rejected as error:
            if error.reply_code != "NOSCRIPT":
                raise
            # a server that was restarted has forgotten the script, and has run nothing
            await self._client.call("SCRIPT", "LOAD", asked.script.text)
            sent = self._clock.monotonic()
            reply = await self._client.send(asked.request)
        body: list[Reply]
        seconds, microseconds, *body = reply
        received = self._clock.monotonic()
        self._clock.learn(int(seconds) + int(microseconds) / 1e6, sent=sent, received=received)
        return body
