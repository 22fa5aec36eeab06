"""A doctor over the memory adapter, or over facts that a test makes up, whose time passes while a round lasts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

from dtq.adapters.system import UuidIds
from dtq.application.audit import AuditTrail
from dtq.application.doctor import Doctor
from dtq.application.reports import Report
from dtq.application.rounds import SECOND_LOOK
from dtq.application.treatment import Treatment
from dtq.domain.facts import Denied, Fact
from dtq.domain.retention import Retention
from dtq.domain.task import Task
from dtq.ports.backend import Backend, BackendOptions
from tests.contract.memory_harness import MemoryHarness
from tests.contract.steps import submit
from tests.factories import OPERATOR


class Clinic:
    """A doctor over the memory adapter, whose clock is moved while the round lasts."""

    def __init__(self) -> None:
        self.harness = MemoryHarness(options=BackendOptions())
        self.backend: Any = self.harness.backend
        self.clock: Any = self.harness.backend.clock
        self.trail = AuditTrail(self.backend.audit, clock=self.clock, observers=())
        treatment = Treatment(self.backend, ids=UuidIds(), trail=self.trail, observers=(), retention=Retention())
        self.doctor = Doctor(self.backend, treatment=treatment, visibility_timeout=timedelta(seconds=30))

    async def examined(self) -> Report:
        return await self._through(self.doctor.examine())

    async def repaired(self) -> Report:
        return await self._through(self.doctor.repair(by=OPERATOR))

    async def _through(self, call: Any) -> Report:
        running = asyncio.ensure_future(call)
        while not running.done():
            await self.clock.advance(SECOND_LOOK)
        report: Report = running.result()
        return report

    async def homeless(self, **spec: object) -> Task:
        task = await submit(self.harness, **spec)
        await self.harness.orphan(task.task_id)
        return task

    async def actions(self) -> list[str]:
        return [entry.action for entry in await self.backend.audit.recent(limit=100)]


class Scripted:
    """An examiner that reads what a test says."""

    def __init__(self, facts: Sequence[Fact | Denied], *, error: Exception | None = None) -> None:
        self.facts = facts
        self.error = error
        self.limited: list[str] = []

    async def read(self, *, limit: int) -> AsyncIterator[Sequence[Fact | Denied]]:
        del limit
        yield self.facts

    async def again(self, facts: Sequence[Fact]) -> Sequence[Fact | None]:
        return facts

    async def limit(self, name: str, *, lifetime: timedelta) -> bool:
        del lifetime
        if self.error is not None:
            raise self.error
        self.limited.append(name)
        return False


def over(facts: Sequence[Fact | Denied], *, error: Exception | None = None) -> Clinic:
    clinic = Clinic()
    backend = clinic.backend
    ports = {name: getattr(backend, name) for name in Backend.__struct_fields__}
    scripted = Backend(**ports | {"examiner": Scripted(facts, error=error)})
    treatment = Treatment(scripted, ids=UuidIds(), trail=clinic.trail, observers=(), retention=Retention())
    clinic.doctor = Doctor(scripted, treatment=treatment, visibility_timeout=timedelta(seconds=30))
    return clinic
