"""Chance from one root seed: each part of a run draws from a child of its own, so that none disturbs another."""

from random import Random  # noqa: TID251 - the only place where the simulation gets its chance from

from dtq.domain.task import LeaseToken, TaskId, Version, WorkerId

__all__ = ["Random", "SeededChance", "SeededIds", "child"]


def child(seed: int, name: str) -> Random:
    """Return the source of chance of this name; text seeds do not depend on the hashing of this process."""
    return Random(f"{seed} {name}")  # noqa: S311 - no secret is made of it


class SeededChance:
    """The Chance port."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)


class SeededIds:
    """The Ids port: names that are new in their run, and the same in each run of a seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def task(self) -> TaskId:
        return TaskId(self._hex(128))

    def worker(self) -> WorkerId:
        return WorkerId(f"worker-{self._hex(32)}")

    def token(self) -> Version:
        return Version(self._hex(128))

    def lease(self) -> LeaseToken:
        return LeaseToken(self._hex(128))

    def _hex(self, bits: int) -> str:
        return f"{self._random.getrandbits(bits):0{bits // 4}x}"
