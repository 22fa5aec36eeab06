"""What tests of the examiner do again and again: read everything, judge it, and look again."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from dtq.application.reaping import SURELY_HANDED_BACK
from dtq.domain.examination import examine
from dtq.domain.facts import (
    Denied,
    Fact,
)
from dtq.domain.findings import Bearings, Finding, Kind
from tests.contract.harness import Harness
from tests.contract.steps import (
    VISIBILITY,
    now,
)

NEVER_PURGED = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
OF_OTHER_USERS = {
    "types and lifetimes of keys",
    "dead letters older than the oldest that is left",
    "how far groups have read, and which streams are used up",
}


async def told(harness: Harness, *, limit: int = 100) -> list[Fact | Denied]:
    """Everything that is read, once: what is stored beside this may let a server name a key again."""
    facts = [fact async for page in harness.backend.examiner.read(limit=limit) for fact in page]
    stills = [_at_no_time(fact) for fact in facts]
    return [fact for number, fact in enumerate(facts) if stills.index(stills[number]) == number]


def _at_no_time(fact: Fact | Denied) -> Fact | Denied:
    """Leave out of a fact what another moment changes though nothing was done."""
    moving: Mapping[str, timedelta] = {name: timedelta() for name in ("idle", "lifetime") if hasattr(fact, name)}
    return replace(fact, **moving)


async def read(harness: Harness, *, limit: int = 100) -> list[Fact]:
    facts: list[Fact] = []
    for fact in await told(harness, limit=limit):
        # the user that these tests run as may do nothing but what dtq needs
        assert not isinstance(fact, Denied) or fact.what in OF_OTHER_USERS, fact
        facts += [] if isinstance(fact, Denied) else [fact]
    return facts


async def found(harness: Harness) -> list[Finding]:
    """What seems wrong at the first look, and is so at the second."""
    bearings = Bearings(
        now=now(harness),
        abandoned_after=2 * VISIBILITY,
        handed_back=SURELY_HANDED_BACK,
        letters_kept_since=NEVER_PURGED,
    )
    suspects = [one for fact in await read(harness) for one in examine(fact, bearings=bearings)]
    again = await harness.backend.examiner.again([one.fact for one in suspects if one.fact is not None])
    sure = [one for fact in again if fact is not None for one in examine(fact, bearings=bearings)]
    assert {(one.kind, one.subject) for one in sure} <= {(one.kind, one.subject) for one in suspects}
    unknown = {Kind.CONSUMER}  # the tests' workers announce themselves nowhere
    return list({(one.kind, one.subject): one for one in sure if one.kind not in unknown}.values())


async def kinds(harness: Harness) -> list[Kind]:
    return [one.kind for one in await found(harness)]


async def the_fact(harness: Harness, kind: type[Any], **members: object) -> Any:
    (fact,) = [
        one
        for one in await read(harness)
        if isinstance(one, kind) and all(getattr(one, name) == value for name, value in members.items())
    ]
    return fact


async def again(harness: Harness, *facts: Fact) -> Sequence[Fact | None]:
    return await harness.backend.examiner.again(facts)
