"""Examines everything that is stored, tells what is wrong by kind, and repairs it where asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from msgspec.structs import replace

from dtq.application.patience import Patience
from dtq.application.reports import Group, Notes, Report, treated
from dtq.application.rounds import BATCH, REST, Rounds
from dtq.application.treatment import Outcome, Treatment, Unrecorded, refused
from dtq.domain.audit import DONE, INTERRUPTED, Actor
from dtq.domain.errors import BrokerRefused
from dtq.domain.facts import CountFact, Record, TaskFact
from dtq.domain.findings import Bearings, Finding, Kind
from dtq.ports.backend import Backend


class Doctor:
    """Examines and repairs. A round takes as long as there is much stored; it never holds anybody up."""

    def __init__(self, backend: Backend, *, treatment: Treatment, visibility_timeout: timedelta) -> None:
        self._clock = backend.clock
        self._store = backend.broker
        self._treatment = treatment
        self._rounds = Rounds(backend, visibility_timeout=visibility_timeout)
        self._running: asyncio.Future[Report] | None = None
        self._turn = asyncio.Lock()

    async def examine(self) -> Report:
        """Go round once; whoever asks meanwhile gets the same report. Raises BrokerUnavailable."""
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._rounds.go())
        return await asyncio.shield(self._running)

    async def repair(self, *, by: Actor) -> Report:
        """Go round, and repair what is safe to repair; each repair is audited, and the whole. One at a time.

        Raises BrokerUnavailable; what was repaired before stays so.
        """
        async with self._turn:
            report = await self._rounds.go(keeps_all=True)
            oriented = await self._rounds.oriented()
            if not oriented.is_recorded:
                left = [(group, self._treatment.leave_all(group.examples)) for group in report.groups]
                return replace(report, groups=[treated(group, outcomes) for group, outcomes in left])
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
            return replace(report, groups=[treated(group, outcomes) for group, outcomes in made])

    async def _in_order(self, groups: Sequence[Group], limits: Bearings) -> AsyncIterator[Group]:
        """Go through what is to be repaired, what the repairs before have brought to light included."""
        known = {group.kind: group for group in groups}
        for kind in Kind:
            group = known.get(kind, Group(kind=kind, count=0, is_exact=True, examples=()))
            told = {one.subject for one in group.examples}
            maybe = [one for one in _brought_to_light(kind, known) if one.subject not in told]
            brought = await self._rounds.all_confirmed(maybe, limits, notes=Notes())
            if group.count or brought:
                yield replace(group, count=group.count + len(brought), examples=[*group.examples, *brought])

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
                again = None if finding.fact is None else await self._confirmed(finding, limits)
            except BrokerRefused as error:
                outcomes.append(refused(error))
                continue
            is_gone = finding.fact is not None and again is None
            outcomes.append(None if is_gone else await self._treatment.give(again or finding, by=by))
            if len(outcomes) % BATCH == 0:
                await self._clock.sleep(REST)

    async def _confirmed(self, finding: Finding, limits: Bearings) -> Finding | None:
        (again,) = await self._rounds.confirmed([finding], limits)
        fact = finding.fact
        if again is not None or not isinstance(fact, TaskFact) or fact.record.task is None:
            return again
        task = await Patience(self._clock).read(partial(self._store.load, fact.task_id))
        if task is None or task.version == fact.record.task.version:
            return None
        # an earlier repair has moved it, and may have set something else right
        moved = replace(fact, record=Record(replace(task, payload=None)))
        (again,) = await self._rounds.confirmed([replace(finding, fact=moved)], limits)
        return again


def _brought_to_light(kind: Kind, repaired: Mapping[Kind, Group]) -> Sequence[Finding]:
    """Return what may be wrong in this way only since others were repaired."""
    if kind is Kind.SURPLUS_ENTRY and Kind.ORPHAN_ENTRY in repaired:
        # of several entries of one lost record the first has become its task's own
        return [replace(one, kind=kind) for one in repaired[Kind.ORPHAN_ENTRY].examples]
    if kind is Kind.COUNT:
        # a status that was written by hand is counted once its task is scheduled
        groups = [repaired[one] for one in (Kind.UNREGISTERED, Kind.HOMELESS) if one in repaired]
        queues = dict.fromkeys(one.queue for group in groups for one in group.examples if one.queue is not None)
        return [
            Finding(kind=kind, subject=queue, detail="", fact=CountFact(queue=queue, text="0", counted=0))
            for queue in queues
        ]
    return ()
