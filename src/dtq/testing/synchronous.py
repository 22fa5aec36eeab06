"""A whole dtq in memory, for tests without an event loop."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

from dtq.entrypoints.client import Client, TaskState
from dtq.entrypoints.client.direct import Tasks
from dtq.handlers.registry import Registry
from dtq.testing.app import LIMIT, PATIENCE, App


class SyncApp:
    """An App whose methods are plain calls; its event loop runs while they do, and at no other time."""

    def __init__(self, tasks: Tasks | Registry, *, settings: Mapping[str, str] | None = None) -> None:
        """Take what App takes."""
        self._app = App(tasks, settings=settings)
        self._loop = asyncio.Runner()
        self.client = Client(self._app.transport, run=self._loop.run)
        self.enqueued = self._app.enqueued
        self.assert_enqueued = self._app.assert_enqueued

    @property
    def now(self) -> datetime:
        """The time that the clock stands at."""
        return self._app.now

    def advance(self, by: timedelta) -> None:
        """Move the clock; see App.advance."""
        self._loop.run(self._app.advance(by))

    def drain(self, *, limit: int = LIMIT, patience: float = PATIENCE) -> list[TaskState]:
        """Run everything that is due, or will be; see App.drain."""
        return self._loop.run(self._app.drain(limit=limit, patience=patience))

    def run_due(self, *, limit: int = LIMIT, patience: float = PATIENCE) -> list[TaskState]:
        """Run what is due now; see App.run_due."""
        return self._loop.run(self._app.run_due(limit=limit, patience=patience))

    def close(self) -> None:
        """Let go of whatever still runs, and of the loop."""
        self._app.close()
        self._loop.close()
