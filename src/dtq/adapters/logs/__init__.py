"""Log lines by structlog, for people or programs."""

from dtq.adapters.logs.capture import LogHandler, take_over
from dtq.adapters.logs.context import in_context
from dtq.adapters.logs.observer import LogObserver
from dtq.adapters.logs.processors import FIELDS

__all__ = ["FIELDS", "LogHandler", "LogObserver", "in_context", "take_over"]
