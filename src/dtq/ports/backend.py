"""All ports of one adapter together, and how an adapter is made: what a third party's package provides."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from msgspec import Struct

from dtq.domain.retention import Retention
from dtq.ports.broker import Broker
from dtq.ports.dead_letters import DeadLetters
from dtq.ports.environment import Clock, Server
from dtq.ports.events import AuditLog, EventBus
from dtq.ports.examination import Examiner
from dtq.ports.locating import Locator
from dtq.ports.queues import Queues, Upkeep
from dtq.ports.survey import Surveyor
from dtq.ports.workers import Leadership, Signals, Workers

DEAD_LETTER_LIMIT: Final = 10_000
"""How many dead letters are kept unless an operator says otherwise."""

OnOperation = Callable[[str, str], None]
"""Hears of each request to the broker's server: its name, and how it ended. Both are of a few. Called on any thread."""


def unheard(operation: str, result: str) -> None:
    """Hear of a request, and do nothing."""
    del operation, result


class BackendOptions(Struct, frozen=True, kw_only=True):
    """What every adapter must be told."""

    key_prefix: str = "dtq"
    retention: Retention = Retention()
    dead_letter_limit: int = DEAD_LETTER_LIMIT
    call_timeout: timedelta = timedelta(seconds=4)
    on_operation: OnOperation = unheard


class Backend(Struct, frozen=True, kw_only=True):
    """One adapter, connected: every port, over one broker.

    A call may be canceled at any point, and ends soon then: what it had sent is carried out or not, and its answer
    reaches nobody else.
    ``sibling`` connects once more, for use on another event loop; None where the backend lives on one loop only.
    """

    broker: Broker
    queues: Queues
    upkeep: Upkeep
    dead_letters: DeadLetters
    workers: Workers
    leadership: Leadership
    signals: Signals
    events: EventBus
    audit: AuditLog
    surveyor: Surveyor
    locator: Locator
    examiner: Examiner
    server: Server
    clock: Clock
    sibling: "Callable[[], Backend] | None" = None


class Connect(Protocol):
    """What an entry point of the group ``dtq.brokers`` names: the maker of a backend for its URL scheme."""

    def __call__(self, url: str, *, options: BackendOptions) -> Backend:
        """Make the backend of *url*; nothing is sent before the first call of a port."""
        ...
