"""Everything that dashboards show, looked at together."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from dtq.domain.task import QueueName
from dtq.domain.workers import Heartbeat


class QueueFigures(Struct, frozen=True, kw_only=True):
    """How full a queue is. ``depth`` counts waiting and running entries, ``pending`` those that are owned."""

    queue: QueueName
    depth: int
    pending: int


class Survey(Struct, frozen=True, kw_only=True):
    """What a broker holds, in numbers. ``scheduled`` counts delayed tasks and retries, those on loan included."""

    queues: Sequence[QueueFigures]
    scheduled: int
    dead_letters: int
    heartbeats: Sequence[Heartbeat]


class Surveyor(Protocol):
    """A look at everything at once, cheap enough to be taken every few seconds."""

    async def survey(self, *, limit: int) -> Survey:
        """Return the figures of up to *limit* queues in alphabetical order, and of what surrounds them.

        Each figure was exact at some moment of the call, not all at the same. Heartbeats are those of every worker that
        was announced and has one, in the order of their ids.
        """
        ...
