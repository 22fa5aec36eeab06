"""Where one task stands among the others, looked up without disturbing anybody."""

from typing import Protocol

from dtq.domain.standing import Standing
from dtq.domain.task import TaskId


class Locator(Protocol):
    """A look at one task and at what is before it. It writes nothing, and costs the same however full a queue is."""

    async def locate(self, task_id: TaskId, *, count_up_to: int) -> Standing | None:
        """Return where a task stands, or None where there is no record of it.

        The record, its queue's pause and its place are of one moment. Of a ready or running task, its entry's owner is
        told with how long that has been idle. Of an entry that nobody has read, the unread entries of each higher
        priority are counted, and those before it in its own, of them no more than *count_up_to*. A priority that cannot
        be read is named in ``spoiled``; whose own it is is taken to be at home. A record that cannot be read is
        answered with a clause that says so. A dead letter that was discarded is at home.
        """
        ...
