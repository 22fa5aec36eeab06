"""A worker that is behind: what tests of fetches abreast have in common."""

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from dtq.domain.task import TaskId
from dtq.ports.broker import Fetch, LeaseReport
from tests.application import handlers
from tests.application.world import Staff, World


async def behind(world: World, *, concurrency: int = 4, submitted: Mapping[str, Any] = {}) -> Staff:
    """A worker all of whose slots are taken, with as much again waiting, and whose next fetches stand still."""
    await world.age_server()
    staff = await world.hire(concurrency=concurrency)
    for gate in ("first", "second"):
        for _ in range(concurrency):
            await world.submit("hold", payload=f'{{"gate": "{gate}"}}', **submitted)
    await world.settle()
    assert concurrency == staff.active
    staff.link.stall("fetch")
    return staff


def open_both_gates() -> None:
    handlers.gate("first").open()
    handlers.gate("second").open()


async def submit_notes(world: World, number: int) -> list[TaskId]:
    return [await world.submit(priority=0) for _ in range(number)]


def watch_fetches(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what the fetches of all workers ask for, from now on."""
    asked: list[dict[str, Any]] = []
    fetch = world.backend.broker.fetch

    async def watched(*arguments: Any, **named: Any) -> Fetch:
        asked.append(named)
        return await fetch(*arguments, **named)

    monkeypatch.setattr(world.backend.broker, "fetch", watched)
    return asked


def delay_second_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let the answer of the second fetch that reaches the broker wait for what is returned."""
    answered, calls = asyncio.Event(), count(1)
    fetch = world.backend.broker.fetch

    async def delayed(*arguments: Any, **named: Any) -> Fetch:
        is_second = next(calls) == 2
        fetched = await fetch(*arguments, **named)
        if is_second:
            await answered.wait()
        return fetched

    monkeypatch.setattr(world.backend.broker, "fetch", delayed)
    return answered


def lose_all_leases(staff: Staff) -> None:
    """Let the worker hear that all it runs belongs to others."""
    crew = staff.worker._crew  # noqa: SLF001 - else only a minute's pause brings this about
    crew.leases.note([LeaseReport(lease=hold.lease.lease, kept=False) for hold in crew.in_flight.holds])
