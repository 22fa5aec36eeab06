"""Who did what: the trail as operators read it, and what goes into it beside the deeds of a single step."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

from dtq.application.observers import Observers
from dtq.application.patience import Patience
from dtq.application.requests import limit_problem, refuse
from dtq.domain.audit import Actor, AuditEntry, audited
from dtq.domain.errors import (
    BrokerUnavailable,
    CancelRequested,
    DeadLetterDiscarded,
    DtqError,
    NotDeadLettered,
    NotInDeadLetters,
    TaskNotFound,
    TaskTerminal,
)
from dtq.domain.task import TaskId
from dtq.domain.text import class_name, clean
from dtq.ports.environment import Clock
from dtq.ports.events import AuditLog, Observer

REFUSALS: Final = (
    CancelRequested,
    DeadLetterDiscarded,
    NotDeadLettered,
    NotInDeadLetters,
    TaskNotFound,
    TaskTerminal,
)
"""What an act can be refused for once its actor is let in: the state of what it was meant for."""

WITHIN: Final = timedelta(seconds=1)
"""How long the answer to a refused act may wait for its entry."""

_SHOWN: Final = 64


class AuditTrail:
    """The audit log, read and written for use cases. Everything that is written is logged as well."""

    def __init__(self, log: AuditLog, *, clock: Clock, observers: Sequence[Observer]) -> None:
        self._log = log
        self._clock = clock
        self._observer = Observers(observers)

    async def recent(self, *, limit: int) -> Sequence[AuditEntry]:
        """Return up to *limit* (1..500) entries, newest first. Raises InvalidRequest."""
        refuse([limit_problem(limit)])
        return await Patience(self._clock).read(partial(self._log.recent, limit=limit))

    async def record(self, entry: AuditEntry) -> None:
        """Append the entry of an act that no single step of the broker carries. Raises BrokerUnavailable."""
        self.tell(entry)
        await Patience(self._clock).once(partial(self._log.record, entry))

    def tell(self, entry: AuditEntry) -> None:
        """Log an entry; that of a step which changes no task is logged by nobody else."""
        self._observer.noticed(
            "audit",
            action=entry.action,
            actor=entry.actor,
            request_id=entry.request_id,
            task_id=entry.task_id,
            queue=entry.queue,
            count=entry.count,
            subject=entry.subject,
            outcome=entry.outcome,
        )

    @asynccontextmanager
    async def refusals(self, action: str, *, by: Actor, task_id: str) -> AsyncIterator[None]:
        """Write down the refusal that the block raises, if it raises one, and let it go on."""
        try:
            yield
        except REFUSALS as error:
            await self._refused(action, error, by=by, task_id=task_id)
            raise

    async def _refused(self, action: str, error: DtqError, *, by: Actor, task_id: str) -> None:
        shown = TaskId(clean(task_id, limit=_SHOWN))
        entry = audited(action, by=by, at=self._clock.now(), task_id=shown, outcome=error.code)
        self.tell(entry)
        try:
            await Patience(self._clock, within=WITHIN).once(partial(self._log.record, entry))
        except BrokerUnavailable as lost:
            # nothing was done, and the caller is to hear so: the log line above has to do
            self._observer.noticed("audit_lost", action=action, request_id=by.request_id, error=class_name(lost))
