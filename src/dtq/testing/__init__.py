"""For tests of handlers and of what submits to them: a whole dtq in memory, whose time the test moves."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtq.testing.app import App
    from dtq.testing.contexts import context
    from dtq.testing.running import StillRunning, TooMuchWork
    from dtq.testing.synchronous import SyncApp

__all__ = ["App", "StillRunning", "SyncApp", "TooMuchWork", "context"]


def __getattr__(name: str) -> Any:
    """Import the parts when they are first asked for: pytest loads this package for every test run there is."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dtq.testing import app, contexts, running, synchronous

    parts = {"App": app.App, "SyncApp": synchronous.SyncApp, "context": contexts.context}
    return parts.get(name) or getattr(running, name)
