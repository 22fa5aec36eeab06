"""Why nothing happens in a queue."""

from dtq.domain.errors import DtqError
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task
from dtq.entrypoints.cli.output import shown
from dtq.entrypoints.container import Container
from dtq.ports.queues import QueueStats


async def why_it_waits(task: Task, container: Container) -> str | None:
    """Say what keeps a task from ending, or None where nothing is known to."""
    match task.status:
        case TaskStatus.RUNNING:
            return f"attempt {task.attempt} runs on {task.worker_id} since {shown(task.started_at)}"
        case TaskStatus.PENDING | TaskStatus.RETRYING:
            return f"it may start at {shown(task.available_at)}"
        case _:
            found = await _looked_at(task.queue, container)
            return None if found is None else _why_nothing_starts(*found)


async def unused_words(queue: str, container: Container) -> str | None:
    """Say that nobody uses a queue, whose name may have been mistyped; None where somebody does."""
    found = await _looked_at(queue, container)
    if found is None:
        return None
    stats, workers = found
    if workers or stats.depth or stats.retry_scheduled:
        return None
    return f"queue {queue} has no tasks and no worker"


def _why_nothing_starts(stats: QueueStats, workers: int) -> str | None:
    if stats.paused:
        return f"queue {stats.queue} is paused, `dtq queue resume {stats.queue}` ends that"
    return None if workers else f"no live worker serves queue {stats.queue}, see `dtq workers`"


async def _looked_at(queue: str, container: Container) -> tuple[QueueStats, int] | None:
    """Return the figures of a queue, and how many workers serve it; None where the broker does not say."""
    try:
        return await container.queues().stats(queue), await container.workers().active(QueueName(queue))
    except DtqError:
        # what the command was told to do is done: this is only said beside it
        return None
