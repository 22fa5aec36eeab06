"""What every port of this adapter works with."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from msgspec import Struct, msgpack

from dtq.adapters.redis.client import WRONG_TYPE, Client, Reply, rejection, with_our_errors
from dtq.adapters.redis.envelope import Answered, Envelope, envelopes
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.scripts import ADMIT, COMMIT, RUN, ScriptCall, Scripts
from dtq.adapters.redis.steps import Writer
from dtq.domain.errors import BrokerRefused, StepStopped
from dtq.ports.backend import BackendOptions
from dtq.ports.environment import Clock

Item = TypeVar("Item")

_UNPERMITTED: Final = "NOPERM"


class Link(Struct, frozen=True, kw_only=True):
    """One connected adapter: its connections, scripts and names, and the clock that it shows."""

    client: Client
    scripts: Scripts
    keys: Keyspace
    clock: Clock
    options: BackendOptions

    def writer(self, envelope: Envelope) -> Writer:
        """Return who writes steps into *envelope*."""
        return Writer(envelope, keys=self.keys, options=self.options)

    async def send(self, envelope: Envelope) -> Sequence[Reply]:
        """Have the acts made, and return one answer of commit.lua each."""
        return await self.scripts.carry_out(written(envelope))

    async def act(self, add: Callable[[Envelope], None]) -> str | None:
        """Have one act on no task made; return its first reply, None where a guard refused.

        Raises StepStopped where it stopped half-way, and Rejected where nothing of it was done; it may be repeated.
        A key of another type tells of no guard whether it holds: that is such a Rejected, and no refusal.
        """
        envelope = Envelope()
        add(envelope)
        (answer,) = await self.send(envelope)
        if answer[0] == Answered.REFUSED and answer[2] == WRONG_TYPE:
            raise rejection(WRONG_TYPE, f"nothing was done: one of {', '.join(envelope.keys)} is of another type")
        return _outcome(answer)

    async def act_on(self, items: Iterable[Item], add: Callable[[Envelope, Item], None]) -> Sequence[str | None]:
        """Have one such act an item made, in order; one that stops or is refused keeps none of the others from it."""
        answers: list[Reply] = []
        for envelope, _ in envelopes(items, add):
            answers += await self.send(envelope)
        return [_outcome(answer) for answer in answers]

    async def run(self, commands: Sequence[Sequence[str]], *, keys: Sequence[str]) -> Sequence[Reply]:
        """Run commands on *keys* as one step, and return each one's reply, which may be a Rejected."""
        numbers = {name: number for number, name in enumerate(keys, 1)}
        numbered = [[numbers.get(argument, argument) for argument in command] for command in commands]
        replies = await self.scripts.run(RUN, keys=keys, arguments=[msgpack.encode(numbered)])
        return with_our_errors(replies, commands)


def written(envelope: Envelope) -> ScriptCall:
    """Return the call that has the acts made."""
    wanted = ADMIT if envelope.needs_memory else COMMIT
    return ScriptCall(wanted, keys=envelope.keys, arguments=envelope.arguments())


def _outcome(answer: Reply) -> str | None:
    if isinstance(answer, str):
        return answer
    code, *rest = answer
    if code == Answered.MADE:
        return str(rest[0])
    if code == Answered.REFUSED:
        return None
    error = rejection(rest[0].partition(" ")[0], f"the broker stopped half-way: {rest[0]}")
    if isinstance(error, BrokerRefused) and error.reply_code != _UNPERMITTED:
        raise StepStopped(str(error))
    # an outage and a permission are seen before the first write
    raise error
