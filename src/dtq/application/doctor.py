"""Rounds through everything that is stored, for what is wrong: looked at twice, told by kind, repaired where asked."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.application.orientation import Orientation, of_server, orient, why_not
from dtq.application.patience import Patience
from dtq.application.treatment import Outcome, Treatment, Unrecorded, refused
from dtq.domain.audit import DONE, INTERRUPTED, Actor
from dtq.domain.errors import BrokerRefused
from dtq.domain.examination import examine
from dtq.domain.facts import CountFact, Denied, Fact
from dtq.domain.findings import Bearings, Finding, Kind
from dtq.ports.backend import Backend
from dtq.ports.environment import ServerFacts

MOST: Final = 1_000
"""How many things of a kind are looked at twice, counted and repaired in one round."""

EXAMPLES: Final = 50
"""How many of a kind are told one by one."""

MOST_DENIED: Final = 50

SECOND_LOOK: Final = timedelta(seconds=2)
"""How long after the first look whatever seems wrong is read again."""

PAGE: Final = 100
REST: Final = timedelta(milliseconds=3)
"""The pause between two pages, for the others."""

_BATCH: Final = 50


class Group(Struct, frozen=True, kw_only=True):
    """What was found of one kind: how many, or at least how many; the first of them; and what became of them.

    ``repaired`` and ``left`` add up to ``count`` where a repair was asked for; ``reasons`` say why some are left, and
    ``outcomes`` what became of each example.
    """

    kind: Kind
    count: int
    is_exact: bool
    examples: Sequence[Finding]
    repaired: int = 0
    left: int = 0
    reasons: Sequence[str] = ()
    outcomes: Sequence[Outcome] = ()


class Suspicion(Struct, frozen=True):
    """What would be wrong if it stayed so: how many of a kind, and after how long the first of them is believed.

    ``subjects`` names the first of them.
    """

    kind: Kind
    count: int
    ripe_in: timedelta
    subjects: Sequence[str]


class Report(Struct, frozen=True, kw_only=True):
    """What one round found; ``advice`` is what operators may want to change although nothing is wrong."""

    examined: int
    groups: Sequence[Group]
    suspicions: Sequence[Suspicion]
    denied: Sequence[Denied]
    advice: Sequence[str]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong, or nothing any more."""
        return all(group.repaired == group.count and group.is_exact for group in self.groups)


class _Round:
    """What a round has come across so far."""

    def __init__(self) -> None:
        self.examined = 0
        self.denied: list[Denied] = []
        self._suspects: dict[tuple[Kind, str], Finding] = {}
        self._numbers = Counter[Kind]()
        self.overflown: set[Kind] = set()

    def add(self, finding: Finding) -> None:
        """Take note of a suspicion, unless it is known, or there are too many of its kind."""
        name = (finding.kind, finding.subject)
        if name in self._suspects:
            return
        if self._numbers[finding.kind] >= MOST:
            self.overflown.add(finding.kind)
            return
        self._numbers[finding.kind] += 1
        self._suspects[name] = finding

    def refuse(self, denied: Denied) -> None:
        """Take note of what could not be read."""
        if len(self.denied) < MOST_DENIED:
            self.denied.append(denied)

    @property
    def suspects(self) -> Sequence[Finding]:
        """Everything that seemed wrong."""
        return [*self._suspects.values()]


class Doctor:
    """Examines and repairs. A round takes as long as there is much stored; it never holds anybody up."""

    def __init__(self, backend: Backend, *, treatment: Treatment, visibility_timeout: timedelta) -> None:
        self._backend = backend
        self._clock = backend.clock
        self._treatment = treatment
        self._visibility = visibility_timeout
        self._running: asyncio.Future[Report] | None = None
        self._turn = asyncio.Lock()

    async def examine(self) -> Report:
        """Go round once; whoever asks meanwhile gets the same report. Raises BrokerUnavailable."""
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._go_round())
        return await asyncio.shield(self._running)

    async def repair(self, *, by: Actor) -> Report:
        """Go round, and repair what is safe to repair; each repair is audited, and the whole. One at a time.

        Raises BrokerUnavailable; what was repaired before stays so.
        """
        async with self._turn:
            report = await self._go_round(keeps_all=True)
            oriented = await self._oriented()
            if not oriented.is_recorded:
                left = [(group, self._treatment.leave_all(group.examples)) for group in report.groups]
                return replace(report, groups=[_treated(group, outcomes) for group, outcomes in left])
            made: list[tuple[Group, list[Outcome]]] = []
            outcome, is_recorded = INTERRUPTED, True
            try:
                async for group in self._in_order(report.groups, oriented.bearings):
                    made.append((group, []))
                    is_recorded = await self._treat_as_recorded(
                        *made[-1], oriented.bearings, by=by, is_recorded=is_recorded
                    )
                outcome = DONE
            finally:
                repaired = sum(outcomes.count(None) for _, outcomes in made)
                await self._treatment.conclude(repaired, by=by, outcome=outcome)
            return replace(report, groups=[_treated(group, outcomes) for group, outcomes in made])

    async def _in_order(self, groups: Sequence[Group], limits: Bearings) -> AsyncIterator[Group]:
        """Go through what is to be repaired, and the counts at last, of queues too that are registered only now."""
        for group in groups:
            if group.kind is not Kind.COUNT:
                yield group
        fresh = [
            Finding(kind=Kind.COUNT, subject=one.queue, detail="", fact=CountFact(queue=one.queue, text="0", counted=0))
            for group in groups
            for one in group.examples
            if group.kind is Kind.UNREGISTERED and one.queue is not None
        ]
        wrong = [one for one in await self._confirmed(fresh, limits) if one is not None]
        counts = next((one for one in groups if one.kind is Kind.COUNT), None)
        if wrong or counts is not None:
            group = counts or Group(kind=Kind.COUNT, count=0, is_exact=True, examples=())
            yield replace(group, count=group.count + len(wrong), examples=[*group.examples, *wrong])

    async def _treat_as_recorded(
        self, group: Group, outcomes: list[Outcome], limits: Bearings, *, by: Actor, is_recorded: bool
    ) -> bool:
        """Repair as long as the audit trail can be written; return whether it still can."""
        try:
            if is_recorded:
                await self._treat(group, outcomes, limits, by=by)
        except Unrecorded as error:
            is_recorded = False
            outcomes.append(str(error))
        outcomes += self._treatment.leave_all(group.examples[len(outcomes) :])
        return is_recorded

    async def _treat(self, group: Group, outcomes: list[Outcome], limits: Bearings, *, by: Actor) -> None:
        for finding in group.examples:
            # an earlier repair may have set this one right too
            try:
                (again,) = [None] if finding.fact is None else await self._confirmed([finding], limits)
            except BrokerRefused as error:
                outcomes.append(refused(error))
                continue
            is_gone = finding.fact is not None and again is None
            outcomes.append(None if is_gone else await self._treatment.give(again or finding, by=by))
            if len(outcomes) % _BATCH == 0:
                await self._clock.sleep(REST)

    async def _go_round(self, *, keeps_all: bool = False) -> Report:
        found = _Round()
        server = await self._server(found)
        oriented = await self._oriented()
        limits = oriented.bearings
        for denied in oriented.denied:
            found.refuse(denied)
        async for page in self._pages():
            bearings = replace(limits, now=self._clock.now())
            for fact in page:
                self._look(fact, found, bearings=bearings)
        if found.suspects:
            await self._clock.sleep(SECOND_LOOK)
        confirmed = [*of_server(server), *await self._all_confirmed(found, limits)]
        advice = () if server is None else server.warnings
        return _report(found, confirmed, advice=advice, keeps_all=keeps_all)

    async def _server(self, found: _Round) -> ServerFacts | None:
        try:
            return await Patience(self._clock).read(self._backend.server.inspect)
        except BrokerRefused as error:
            found.refuse(Denied("the server", why_not(error)))
            return None

    async def _pages(self) -> AsyncIterator[Sequence[Fact | Denied]]:
        async for page in self._backend.examiner.read(limit=PAGE):
            yield page
            await self._clock.sleep(REST)

    def _look(self, fact: Fact | Denied, found: _Round, *, bearings: Bearings) -> None:
        if isinstance(fact, Denied):
            found.refuse(fact)
            return
        found.examined += 1
        for finding in examine(fact, bearings=bearings):
            found.add(finding)

    async def _all_confirmed(self, found: _Round, limits: Bearings) -> Sequence[Finding]:
        suspects = found.suspects
        # the counts are read all at once, however many are asked for
        counts = [one for one in suspects if isinstance(one.fact, CountFact)]
        others = [one for one in suspects if not isinstance(one.fact, CountFact)]
        batches = [others[first : first + _BATCH] for first in range(0, len(others), _BATCH)]
        confirmed: list[Finding] = []
        for batch in (*batches, counts):
            try:
                confirmed += [one for one in await self._confirmed(batch, limits) if one is not None]
            except BrokerRefused as error:
                found.refuse(Denied("what seemed wrong at first", why_not(error)))
            await self._clock.sleep(REST)
        return confirmed

    async def _confirmed(self, suspects: Sequence[Finding], limits: Bearings) -> Sequence[Finding | None]:
        """Read again what *suspects* are about, each in one step, and judge anew; None where all is well."""
        facts = [one.fact for one in suspects if one.fact is not None]
        if not facts:
            return ()
        again = await Patience(self._clock).read(partial(self._backend.examiner.again, facts))
        bearings = replace(limits, now=self._clock.now())
        return [
            next((one for one in found if (one.kind, one.subject) == (suspect.kind, suspect.subject)), None)
            for suspect, fact in zip(suspects, again, strict=True)
            for found in [[] if fact is None else [*examine(fact, bearings=bearings)]]
        ]

    async def _oriented(self) -> Orientation:
        return await orient(self._backend, visibility_timeout=self._visibility)


def _report(found: _Round, confirmed: Sequence[Finding], *, advice: Sequence[str], keeps_all: bool) -> Report:
    groups: list[Group] = []
    suspicions: list[Suspicion] = []
    for kind in Kind:
        ripe = [one for one in confirmed if one.kind is kind and not one.ripe_in]
        young = [one for one in confirmed if one.kind is kind and one.ripe_in]
        if ripe:
            is_exact = kind not in found.overflown
            shown = ripe if keeps_all else ripe[:EXAMPLES]
            groups.append(Group(kind=kind, count=len(ripe), is_exact=is_exact, examples=shown))
        if young:
            first = min(one.ripe_in for one in young)
            suspicions.append(Suspicion(kind, len(young), first, [one.subject for one in young[:EXAMPLES]]))
    return Report(
        examined=found.examined, groups=groups, suspicions=suspicions, denied=tuple(found.denied), advice=advice
    )


def _treated(group: Group, outcomes: Sequence[Outcome]) -> Group:
    reasons = [reason for reason in outcomes if reason is not None]
    return replace(
        group,
        examples=group.examples[:EXAMPLES],
        repaired=len(outcomes) - len(reasons),
        left=len(reasons),
        reasons=tuple(dict.fromkeys(reasons))[:EXAMPLES],
        outcomes=outcomes[:EXAMPLES],
    )
