"""Why nothing happens in a queue."""

from dtq.domain.errors import DtqError
from dtq.domain.task import QueueName, Task
from dtq.entrypoints.container import Container


async def why_it_waits(task: Task, container: Container) -> str | None:
    """Say what keeps a task most from ending, or None where the broker does not say."""
    try:
        explanation = await container.explaining().explain(task.task_id)
    except DtqError:
        # what the command was told to do is done: this is only said beside it
        return None
    return explanation.reasons[0].text


async def unused_words(queue: str, container: Container) -> str | None:
    """Say that nobody uses a queue, whose name may have been mistyped; None where somebody does."""
    try:
        stats, workers = await container.queues().stats(queue), await container.workers().active(QueueName(queue))
    except DtqError:
        # as above
        return None
    if workers or stats.depth or stats.retry_scheduled:
        return None
    return f"queue {queue} has no tasks and no worker"
