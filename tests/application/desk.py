"""The start of one task, whose commits are answered as a test has it."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from dtq.application.hand_back import HandBack
from dtq.application.set_aside import SetAside
from dtq.application.starting import Starting
from dtq.application.tenure import Undisputed
from dtq.domain.change import Change
from dtq.domain.delivery import FailurePolicy
from dtq.domain.task import Task
from dtq.ports.answers import CommitAnswer
from dtq.ports.broker import HeldLease
from tests.application.world import World
from tests.factories import QUEUE, WORKER

Answer = Callable[[Change], CommitAnswer]


class Desk:
    """A starting over the world's broker, whose commits are answered as a test has it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[Change] = []
        self.run: list[tuple[Task, HeldLease]] = []
        self.handed_back = 0
        self._answers: list[Answer] = []
        backend = world.backend
        hand_back = HandBack(
            backend.broker,
            signals=backend.signals,
            tenure=Undisputed(),
            worker=WORKER,
            queue=QUEUE,
            on_done=self._on_hand_back,
        )
        self.set_aside = SetAside(clock=world.clock, observer=world.notes, queue=QUEUE, rest=timedelta(seconds=30))
        self._starting = Starting(
            backend.broker,
            commit=self._commit,
            hand_back=hand_back,
            set_aside=self.set_aside,
            tenure=Undisputed(),
            worker=WORKER,
            policy=FailurePolicy(),
            clock=world.clock,
            ids=world.ids,
            observer=world.notes,
            run=lambda task, lease: self.run.append((task, lease)),
        )

    async def start(self, *answers: Answer) -> None:
        """Start one task, and answer its commits one after the other."""
        await self.world.submit()
        self._answers = list(answers)
        fetched = await self.world.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)
        await self._starting.start(fetched.deliveries)

    async def _commit(self, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
        self.sent += changes
        return [self._answers.pop(0)(change) for change in changes]

    def _on_hand_back(self) -> None:
        self.handed_back += 1
