"""Starts that fetch.lua makes of tasks which their worker has not seen (ADR 104).

How a start is made is described in one place (description.py). Here that of a stand-in is described, once for all
tasks: where its commands show what is the stand-in's own, the script puts what is the task's.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct, json, msgpack

from dtq.adapters.redis.client import Argument
from dtq.adapters.redis.description import Description
from dtq.adapters.redis.envelope import TOKEN, TOKENS
from dtq.adapters.redis.forms import Blank
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.moves import Finder, Move
from dtq.domain.change import Change, Requirement
from dtq.domain.delivery import Claim, start_unseen
from dtq.domain.entry import UNSTARTED, milliseconds, moment
from dtq.domain.task import EntryId, LeaseToken, QueueName, Receipt, Task, TaskId, Version, WorkerId
from dtq.ports.answers import TOKENS_REMEMBERED
from dtq.ports.backend import BackendOptions
from dtq.ports.broker import Offers

_MILLISECOND: Final = timedelta(milliseconds=1)

# what the stand-in is known by: no name that dtq takes has such a character, and no moment of life comes so late
_ID, _TYPE, _LEASE, _TOKEN, _WORKER, _QUEUE, _JOINED = (chr(0xE000 + number) for number in range(7))
_AT: Final = moment(100_000_000_000_001)
_TIMEOUT: Final = timedelta(milliseconds=100_000_000_000_003)

_OF_EVERY_SWEEP: Final = {Requirement.HELD, Requirement.UNPAUSED}
"""What holds of whatever a sweep has just taken."""


class Starts(Struct, frozen=True):
    """How fetch.lua makes a start: the commands, and how long a record is kept beside the timeout of its task."""

    commands: bytes
    lifetime: int


class Offered(Struct, frozen=True):
    """Offers on their way to fetch.lua, and how it makes a start."""

    offers: Offers
    starts: Starts

    def arguments(self) -> Sequence[Argument]:
        """Return the last arguments of fetch.lua."""
        at = self.offers.at
        return (
            msgpack.encode([text for offer in self.offers.starts for text in (offer.lease, offer.token)]),
            milliseconds(at),
            json.encode(at),
            self.starts.commands,
            self.starts.lifetime,
            TOKENS_REMEMBERED,
        )


NOTHING_OFFERED: Final = ("",) * 6
"""What is in place of these arguments where nothing is offered."""


def starts(keys: Keyspace, *, options: BackendOptions) -> Starts:
    """Describe how a start is made, for all tasks; the values stand in the order in which fetch.lua numbers them."""
    find = Finder(keys, options=options)
    move = Move(_start_of_the_stand_in())
    blank = Blank(move)
    steps = Description(move.shape, blank, find=find, options=options).steps()
    lifetime = find.lifetime(move)
    values: Sequence[str] = (
        *(_ID, _TYPE, _LEASE, _TOKEN),
        *(str(milliseconds(_AT)), json.encode(_AT).decode()),
        *(_JOINED, lifetime, _WORKER, _QUEUE),
    )
    commands = [blank.filled(command, {TOKEN: _TOKEN, TOKENS: _JOINED}) for command, *_ in steps]
    if not _OF_EVERY_SWEEP.issuperset(move.change.requires) or any(guard for _, *guard in steps):
        raise ValueError("a start requires what a sweep does not see to")
    written = msgpack.encode([_with_holes(command, values) for command in commands])
    return Starts(written, int(lifetime) - _TIMEOUT // _MILLISECOND)


def _start_of_the_stand_in() -> Change:
    status, attempt = UNSTARTED
    task = Task(
        task_id=TaskId(_ID),
        queue=QueueName(_QUEUE),
        task_type=_TYPE,
        priority=0,
        max_attempts=1,
        timeout=_TIMEOUT,
        created_at=_AT,
        available_at=_AT,
        status=status,
        attempt=attempt,
        entry_id=EntryId("0-1"),
        version=Version("0"),
    )
    receipt = Receipt(task.queue, task.priority, EntryId("0-1"))
    claim = Claim(worker=WorkerId(_WORKER), lease=LeaseToken(_LEASE), receipt=receipt)
    change = start_unseen(task, claim=claim, now=_AT, token=Version(_TOKEN))
    if change is None:
        raise ValueError("what merely waits for its first start is not started unseen")
    return change


def _with_holes(command: Sequence[str], values: Sequence[str]) -> Sequence[object]:
    """Return the words of a command, then of each that has something of the stand-in's own its place and its pieces."""
    own = re.compile("(" + "|".join(map(re.escape, values)) + ")")
    holes = [
        [place, *(values.index(part) + 1 if part in values else part for part in own.split(word) if part)]
        for place, word in enumerate(command, 1)
        if own.search(word)
    ]
    places = {place for place, *_ in holes}
    return [["" if place in places else word for place, word in enumerate(command, 1)], *holes]
