"""One repair after the other, each with its entry in the audit trail."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from dtq.application.audit import AuditTrail
from dtq.application.observers import Observers
from dtq.application.patience import Patience
from dtq.application.transact import commit_whole
from dtq.domain.acts import (
    Act,
    BuryEntry,
    DropConsumers,
    Forget,
    HandBack,
    Introduce,
    Limit,
    Persist,
    Prolong,
    Recount,
    Register,
    RemoveEntry,
    RemoveLetter,
    Rewind,
    RewriteKey,
    Shorten,
    Strike,
)
from dtq.domain.audit import Actor, AuditEntry, audited
from dtq.domain.change import Change
from dtq.domain.diagnoses import DIAGNOSES
from dtq.domain.errors import OF_ONE_REQUEST, BrokerRefused, StepStopped
from dtq.domain.findings import Finding
from dtq.domain.remedies import Pharmacy, remedy
from dtq.domain.retention import Retention
from dtq.domain.task import WorkerId
from dtq.ports.answers import Already, Applied, CommitAnswer
from dtq.ports.backend import Backend
from dtq.ports.broker import Delivery
from dtq.ports.environment import Ids
from dtq.ports.events import Observer

MOVED: Final = "it has changed since it was looked at: look again"

UNRECORDED: Final = "the audit trail cannot be read, and no repair goes unrecorded"

UNSAFE: Final = "no repair of this one is safe: it is for a person"

_DOCTOR: Final = WorkerId("doctor")

Outcome: TypeAlias = str | None
"""Why something is left as it was; None where it is repaired."""


class Unrecorded(Exception):
    """A repair was made, and the audit trail does not let itself be written: it is to be the last one."""


class Treatment:
    """Carries out what the domain prescribes."""

    def __init__(
        self,
        backend: Backend,
        *,
        ids: Ids,
        trail: AuditTrail,
        observers: Sequence[Observer],
        retention: Retention,
    ) -> None:
        self._backend = backend
        self._clock = backend.clock
        self._ids = ids
        self._trail = trail
        self._observer = Observers(observers)
        self._retention = retention

    async def give(self, finding: Finding, *, by: Actor) -> Outcome:
        """Repair one thing, and say why not where it is left. Raises BrokerUnavailable in an outage, Unrecorded."""
        now, action = self._clock.now(), f"doctor.{finding.kind}"
        audit = audited(action, by=by, at=now, task_id=finding.task_id, queue=finding.queue, subject=finding.own_name)
        using = Pharmacy(now=now, token=self._ids.token(), audit=audit, retention=self._retention)
        prescribed = remedy(finding, using=using)
        if prescribed is None:
            return _by_hand(finding)
        try:
            if isinstance(prescribed, Change):
                is_done = await self._commit(prescribed)
            else:
                is_done = await Patience(self._clock).write(partial(self._act, prescribed))
        except OF_ONE_REQUEST as error:
            return refused(error)
        if is_done and not isinstance(prescribed, Change):
            try:
                await self._trail.record(audit)
            except OF_ONE_REQUEST as error:
                raise Unrecorded(f"it is repaired, but the audit trail refused: {error}") from error
        return None if is_done else MOVED

    def leave_all(self, findings: Sequence[Finding]) -> list[Outcome]:
        """Repair nothing, since nothing of it could be audited; return why each of *findings* is left."""
        return [UNRECORDED if DIAGNOSES[one.kind].is_repaired else _by_hand(one) for one in findings]

    async def conclude(self, repaired: int, *, by: Actor, outcome: str) -> AuditEntry:
        """Write down how many things one request has repaired, and whether it came to its end."""
        entry = audited("doctor.repair", by=by, at=self._clock.now(), count=repaired, outcome=outcome)
        with suppress(*OF_ONE_REQUEST):
            # it is logged in any case, and the report says what the trail refused
            await self._trail.record(entry)
        return entry

    async def _commit(self, change: Change) -> bool:
        patience = Patience(self._clock)

        async def commit(wanted: Change) -> CommitAnswer:
            (answer,) = await patience.write(partial(self._backend.broker.commit, [wanted]))
            return answer

        answer = await commit_whole(change, commit=commit)
        is_done = isinstance(answer, Applied | Already)
        if is_done:
            self._observer.committed(change)
        return is_done

    async def _act(self, act: Act) -> bool:
        match act:
            case RemoveEntry() | BuryEntry() | Forget() | HandBack():
                return await self._on_work(act)
            case Register(queue=queue):
                await self._backend.queues.register(queue)
                return True
            case Rewind(queue=queue, priorities=priorities):
                examiner = self._backend.examiner
                return all([await examiner.rewind(queue, priority=priority) for priority in priorities])
            case DropConsumers(queue=queue):
                known = await self._backend.workers.known()
                return await self._backend.upkeep.drop_consumers(queue, alive=known) > 0
            case _:
                return await self._on_store(act)

    async def _on_work(self, act: RemoveEntry | BuryEntry | Forget | HandBack) -> bool:
        broker = self._backend.broker
        match act:
            case RemoveEntry(receipt=receipt, task_id=task_id, task=task):
                found = Delivery(receipt=receipt, fields={"task_id": task_id}, task=task)
                return await broker.acknowledge(found, worker=_DOCTOR, absorbed=False, token=self._ids.token())
            case BuryEntry(fact=fact):
                malformed = Delivery(receipt=fact.receipt, fields=fact.fields, task=None)
                return await broker.bury(malformed, worker=_DOCTOR, at=self._clock.now())
            case Forget(task_id=task_id, version=version):
                return await broker.forget(task_id, version=version)
            case HandBack(receipt=receipt, owner=None):
                return await self._backend.examiner.offer(receipt)
            case HandBack(receipt=receipt, owner=owner):
                return owner is not None and await broker.release([receipt], worker=owner) == 1

    async def _on_lifetime(self, act: Limit | Shorten | Prolong | Persist) -> bool:
        examiner = self._backend.examiner
        match act:
            case Limit(name=name, lifetime=lifetime):
                return await examiner.limit(name, lifetime=lifetime)
            case Shorten(name=name, lifetime=lifetime):
                return await examiner.shorten(name, lifetime=lifetime)
            case Prolong(name=name, lifetime=lifetime, task_id=task_id, version=version):
                return await examiner.prolong(name, lifetime=lifetime, task_id=task_id, version=version)
            case Persist(name=name):
                return await examiner.persist(name)

    async def _on_store(
        self, act: RewriteKey | Limit | Shorten | Prolong | Persist | Recount | Strike | RemoveLetter | Introduce
    ) -> bool:
        examiner = self._backend.examiner
        match act:
            case RewriteKey(queue=queue, key=key, text=text, record=record, lifetime=lifetime):
                return await examiner.rewrite_key(queue, key=key, text=text, record=record, lifetime=lifetime)
            case Limit() | Shorten() | Prolong() | Persist():
                return await self._on_lifetime(act)
            case Recount(fact=fact):
                return await examiner.recount(fact)
            case Strike(name=name):
                return await examiner.strike(name)
            case RemoveLetter(entry_id=entry_id, task_id=task_id, version=version):
                return await examiner.remove_letter(entry_id, task_id=task_id, version=version)
            case Introduce(worker=worker):
                return await examiner.introduce(worker)


def refused(error: BrokerRefused | StepStopped) -> str:
    """Say why something is left that the broker does not permit or accept."""
    return f"the broker refused: {error}"


def _by_hand(finding: Finding) -> str:
    """Say what a person has to do with what nothing repairs; a remedy of others of its kind is none of this one."""
    diagnosis = DIAGNOSES[finding.kind]
    return UNSAFE if diagnosis.is_repaired else diagnosis.remedy
