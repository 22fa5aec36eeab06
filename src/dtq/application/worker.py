"""One worker: its states, its loops, and how it ends."""

from collections.abc import Callable, Sequence

from dtq.application.beat_runner import BeatRunner
from dtq.application.settings import ExitCode, WorkerSettings
from dtq.domain.errors import DtqError
from dtq.handlers import Registry
from dtq.ports.backend import Backend
from dtq.ports.environment import Chance, Ids
from dtq.ports.events import Observer


class WorkerIdInUse(DtqError):
    """Another worker of this id is alive."""

    code = "WORKER_ID_IN_USE"


class Worker:
    """Runs the handlers of *registry* on the work of one queue until it is asked to stop."""

    def __init__(
        self,
        backend: Backend,
        *,
        registry: Registry,
        settings: WorkerSettings,
        ids: Ids,
        chance: Chance,
        observers: Sequence[Observer],
        retryable: tuple[type[BaseException], ...],
        beat: BeatRunner,
        abort: Callable[[ExitCode], None],
    ) -> None:
        """*abort* ends the process at once; the beat calls it, from its own thread, where the main loop hangs."""

    async def run(self) -> ExitCode:
        """Work until asked to stop. Raises WorkerIdInUse or UnsuitableBroker; an outage ends nothing."""
        raise NotImplementedError

    def request_stop(self) -> None:
        """Drain; asked a second time, end now. To be called on the worker's event loop."""
