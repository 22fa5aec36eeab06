"""What an examination goes by, and what it cannot go by because that cannot be read."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from msgspec import Struct

from dtq.application.patience import CALL_DEADLINE, Patience
from dtq.application.reaping import SURELY_HANDED_BACK
from dtq.domain.audit import DONE
from dtq.domain.errors import BrokerRefused, RecordUnreadable
from dtq.domain.facts import SEE_TYPES, Denied
from dtq.domain.findings import Bearings, Finding, Kind
from dtq.domain.timing import CLOCK_TOLERANCE
from dtq.domain.workers import Heartbeat
from dtq.ports.backend import Backend
from dtq.ports.environment import ServerFacts

_TRAIL: Final = 2_000
_PURGE: Final = "dlq.purge"
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END: Final = datetime.max.replace(tzinfo=UTC)


class Orientation(Struct, frozen=True, kw_only=True):
    """Limits by which nothing is found that could not be known; ``denied`` tells what is not found for that."""

    bearings: Bearings
    denied: Sequence[Denied]
    is_recorded: bool
    """Whether the audit trail can be read, without which nothing is repaired."""


async def orient(backend: Backend, *, visibility_timeout: timedelta) -> Orientation:
    """Find out what ages to go by: the longest visibility timeout of all workers, and when letters were purged.

    Raises BrokerUnavailable in an outage.
    """
    denied: list[Denied] = []
    abandoned_after, swept_since, kept_since, is_recorded = timedelta.max, None, _END, False
    patience = Patience(backend.clock)
    try:
        # an abandoned entry is taken over within a quarter more, where somebody has room for it
        living = await _living(backend, patience=patience)
        abandoned_after = 2 * max([visibility_timeout, *(one.visibility_timeout for one in living)])
        swept_since = min((one.started_at for one in living), default=None)
    except BrokerRefused as error:
        denied.append(Denied("tasks that are abandoned", why_not(error)))
    try:
        kept_since, is_recorded = await letters_kept_since(backend), True
    except BrokerRefused as error:
        denied.append(Denied("dead letters that are missing", why_not(error)))
    bearings = Bearings(
        now=backend.clock.now(),
        abandoned_after=abandoned_after,
        handed_back=SURELY_HANDED_BACK,
        letters_kept_since=kept_since,
        swept_since=swept_since,
    )
    return Orientation(bearings=bearings, denied=denied, is_recorded=is_recorded)


async def letters_kept_since(backend: Backend) -> datetime:
    """Return the moment since when dead letters cannot have been purged. Raises BrokerRefused, and as `orient` does."""
    # the entry of a purge is written down before it is carried out
    return await _last_purge(backend, patience=Patience(backend.clock)) + 2 * CALL_DEADLINE


def why_not(error: BrokerRefused) -> str:
    """Say why something could not be read; of a key of another type there is a finding that says more."""
    return SEE_TYPES if isinstance(error, RecordUnreadable) else str(error)


def of_server(server: ServerFacts | None) -> list[Finding]:
    """Say what is wrong with the server; nothing where it does not tell."""
    if server is None:
        return []
    findings = [Finding(kind=Kind.SERVER, subject=server.description, detail=problem) for problem in server.problems]
    apart = server.host_offset
    if abs(apart) > CLOCK_TOLERANCE:
        side = "ahead of" if apart > timedelta() else "behind"
        detail = f"the broker's clock is {abs(apart).total_seconds():.1f} s {side} this host's"
        findings.append(Finding(kind=Kind.CLOCKS, subject="this host", detail=detail))
    return findings


async def _living(backend: Backend, *, patience: Patience) -> Sequence[Heartbeat]:
    known = await patience.read(backend.workers.known)
    heartbeats = [await patience.read(partial(backend.workers.get, worker)) for worker in known]
    return [one for one in heartbeats if one is not None]


async def _last_purge(backend: Backend, *, patience: Patience) -> datetime:
    trail = await patience.read(partial(backend.audit.recent, limit=_TRAIL))
    purges = [entry.ts for entry in trail if entry.action == _PURGE and entry.outcome == DONE]
    if len(trail) >= _TRAIL:
        purges.append(trail[-1].ts)
    return max(purges, default=_BEGINNING)
