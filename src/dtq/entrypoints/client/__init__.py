"""The client of programs that submit tasks: over HTTP or straight to the broker, awaited or not."""

from dtq.entrypoints.client.asynchronous import AsyncClient
from dtq.entrypoints.client.results import Cancelled, NoResult, Submission, Submitted, TaskState
from dtq.entrypoints.client.synchronous import Client

__all__ = ["AsyncClient", "Cancelled", "Client", "NoResult", "Submission", "Submitted", "TaskState"]
