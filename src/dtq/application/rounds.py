"""Rounds through everything that is stored, for what is wrong: what seems so is looked at twice."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from dtq.application.orientation import Orientation, letters_kept_since, of_server, orient, why_not
from dtq.application.patience import Patience
from dtq.application.reports import Notes, Report, report_of
from dtq.domain.errors import BrokerRefused
from dtq.domain.examination import examine
from dtq.domain.facts import CountFact, Denied, Fact
from dtq.domain.findings import Bearings, Finding, Kind
from dtq.ports.backend import Backend
from dtq.ports.environment import ServerFacts

SECOND_LOOK: Final = timedelta(seconds=2)
"""How long after the first look whatever seems wrong is read again."""

PAGE: Final = 100
REST: Final = timedelta(milliseconds=3)
"""The pause between two pages, for the others."""

BATCH: Final = 50
"""How many things are looked at again, or repaired, before a rest."""


class Rounds:
    """Goes round. A round takes as long as there is much stored; it never holds anybody up."""

    def __init__(self, backend: Backend, *, visibility_timeout: timedelta) -> None:
        self._backend = backend
        self._clock = backend.clock
        self._visibility = visibility_timeout

    async def go(self, *, keeps_all: bool = False) -> Report:
        """Go round once; *keeps_all* keeps all that is sure, and not only examples. Raises BrokerUnavailable."""
        found = Notes()
        server = await self._server(found)
        if server is not None and not server.is_primary:
            found.refuse(Denied("what is stored", "it can be looked at on the primary alone"))
            return report_of(found, of_server(server), advice=server.warnings, keeps_all=keeps_all)
        oriented = await self.oriented()
        limits = oriented.bearings
        for denied in oriented.denied:
            found.refuse(denied)
        async for page in self._pages():
            bearings = replace(limits, now=self._clock.now())
            for fact in page:
                self._look(fact, found, bearings=bearings)
        if found.suspects:
            await self._clock.sleep(SECOND_LOOK)
        confirmed = [*of_server(server), *await self.all_confirmed(found.suspects, limits, notes=found)]
        advice = () if server is None else server.warnings
        return report_of(found, confirmed, advice=advice, keeps_all=keeps_all)

    async def _server(self, found: Notes) -> ServerFacts | None:
        try:
            return await Patience(self._clock).read(self._backend.server.inspect)
        except BrokerRefused as error:
            found.refuse(Denied("the server", why_not(error)))
            return None

    async def _pages(self) -> AsyncIterator[Sequence[Fact | Denied]]:
        async for page in self._backend.examiner.read(limit=PAGE):
            yield page
            await self._clock.sleep(REST)

    def _look(self, fact: Fact | Denied, found: Notes, *, bearings: Bearings) -> None:
        if isinstance(fact, Denied):
            found.refuse(fact)
            return
        found.examined += 1
        for finding in examine(fact, bearings=bearings):
            found.add(finding)

    async def all_confirmed(self, suspects: Sequence[Finding], limits: Bearings, *, notes: Notes) -> Sequence[Finding]:
        """Look again at any number of *suspects*, with rests; what may not be looked at any more goes into *notes*."""
        # the counts are read all at once, however many are asked for
        counts = [one for one in suspects if isinstance(one.fact, CountFact)]
        others = [one for one in suspects if not isinstance(one.fact, CountFact)]
        batches = [others[first : first + BATCH] for first in range(0, len(others), BATCH)]
        confirmed: list[Finding] = []
        for batch in filter(None, (*batches, counts)):
            try:
                confirmed += [one for one in await self.confirmed(batch, limits) if one is not None]
            except BrokerRefused as error:
                notes.refuse(Denied("what seemed wrong at first", why_not(error)))
            await self._clock.sleep(REST)
        return confirmed

    async def confirmed(self, suspects: Sequence[Finding], limits: Bearings) -> Sequence[Finding | None]:
        """Read again what *suspects* are about, each in one step, and judge anew; None where all is well."""
        facts = [one.fact for one in suspects if one.fact is not None]
        if not facts:
            return ()
        again = await Patience(self._clock).read(partial(self._backend.examiner.again, facts))
        if any(one.kind is Kind.LETTER_MISSING for one in suspects):
            # what is gone by now may have been purged since the round began, and the trail says so by now
            limits = replace(limits, letters_kept_since=await letters_kept_since(self._backend))
        bearings = replace(limits, now=self._clock.now())
        return [
            next((one for one in found if (one.kind, one.subject) == (suspect.kind, suspect.subject)), None)
            for suspect, fact in zip(suspects, again, strict=True)
            for found in [[] if fact is None else [*examine(fact, bearings=bearings)]]
        ]

    async def oriented(self) -> Orientation:
        """Find out what to go by. Raises BrokerUnavailable in an outage."""
        return await orient(self._backend, visibility_timeout=self._visibility)
