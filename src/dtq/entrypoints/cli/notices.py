"""What services notice while a command uses them, in words for whoever typed it."""

from dtq.domain.change import Change
from dtq.domain.events import Event
from dtq.entrypoints.cli.exits import print_error
from dtq.ports.events import Observer


class Notices:
    """Passes everything on to a log, but says in words what is about the command itself."""

    def __init__(self, log: Observer) -> None:
        self._log = log

    def committed(self, *changes: Change) -> None:
        """Pass changes on."""
        self._log.committed(*changes)

    def happened(self, event: Event) -> None:
        """Pass an event on."""
        self._log.happened(event)

    def noticed(self, what: str, **details: str | float | bool | None) -> None:
        """Say what somebody at a terminal should know, and pass the rest on."""
        match what, details:
            case "idempotency_key_reused", {"task_id": task_id, "differs": differs}:
                print_error(
                    f"dtq: this idempotency key stands for task {task_id}, which was submitted with another {differs}: "
                    "what you asked for now was not submitted"
                )
            case _:
                self._log.noticed(what, **details)
