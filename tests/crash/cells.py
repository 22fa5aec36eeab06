"""What the crash matrix is made of: points, faults, and the outcome of each pair."""

from dataclasses import dataclass
from enum import Enum

from dtq.domain.status import TaskStatus
from tests.crash.scenes import Scene


class Fault(Enum):
    """What happens at the step."""

    NONE = "undisturbed"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    REQUEST_LOST = "request lost"
    REPLY_LOST = "reply lost"
    COMMANDS_DENIED = "commands denied"
    KEYS_DENIED = "keys denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Where a task ends: its status and attempt, the attempts whose handler began, what a client is answered last.

    ``takes_over``: the task waits until the visibility timeout of a dead worker, or its lead, has run out.
    """

    status: TaskStatus = TaskStatus.SUCCEEDED
    attempt: int = 1
    starts: tuple[int, ...] = (1,)
    answers: tuple[int, ...] = ()
    takes_over: bool = False

    def __str__(self) -> str:
        """Say it as the document does."""
        runs = {0: "no run", 1: "1 run"}.get(len(self.starts), f"{len(self.starts)} runs")
        words = [self.status.value, f"attempt {self.attempt}", runs]
        words += ["later"] if self.takes_over else []
        words += ["answer " + " or ".join(map(str, self.answers))] if self.answers else []
        return ", ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One step: how it is come to, the word that its request alone has, and the commands that make it."""

    name: str
    scene: Scene
    word: bytes
    commands: frozenset[str]
    outcomes: dict[Fault, Outcome]
    is_single: bool = False
    """A refusal leaves the task where this actor does not come to the step again by itself."""
