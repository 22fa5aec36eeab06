"""The broker within one process: for tests, and for programs that embed dtq. What is stored dies with the backend."""

from dtq.adapters.memory.broker import MemoryBroker
from dtq.adapters.memory.clock import ManualClock
from dtq.adapters.memory.dead_letters import MemoryDeadLetters
from dtq.adapters.memory.events import MemoryAuditLog, MemoryEventBus
from dtq.adapters.memory.examination import MemoryExaminer
from dtq.adapters.memory.locating import MemoryLocator
from dtq.adapters.memory.queues import MemoryQueues, MemoryUpkeep
from dtq.adapters.memory.server import MemoryServer
from dtq.adapters.memory.state import State
from dtq.adapters.memory.survey import MemorySurveyor
from dtq.adapters.memory.workers import MemoryLeadership, MemorySignals, MemoryWorkers
from dtq.adapters.system import SystemClock
from dtq.ports.backend import Backend, BackendOptions

__all__ = ["ManualClock", "State", "backend_of", "connect"]


def connect(url: str, *, options: BackendOptions) -> Backend:
    """Make an empty backend on the system's clock; each call makes another one, whatever the URL says."""
    del url
    return backend_of(State(SystemClock(), options=options))


def backend_of(state: State) -> Backend:
    """Offer all ports over one state, which brings its clock."""
    workers = MemoryWorkers(state)
    return Backend(
        broker=MemoryBroker(state),
        queues=MemoryQueues(state),
        upkeep=MemoryUpkeep(state),
        dead_letters=MemoryDeadLetters(state),
        workers=workers,
        leadership=MemoryLeadership(state),
        signals=MemorySignals(state),
        events=MemoryEventBus(state),
        audit=MemoryAuditLog(state),
        surveyor=MemorySurveyor(state, workers=workers),
        locator=MemoryLocator(state),
        examiner=MemoryExaminer(state, workers=workers),
        server=MemoryServer(state),
        clock=state.clock,
    )
