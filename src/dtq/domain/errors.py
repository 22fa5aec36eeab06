"""What callers can get wrong or meet, each with a stable code that API and CLI translate."""

from typing import ClassVar, Final, TypeGuard

from msgspec import Struct

from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from dtq.domain.text import text_of


class FieldProblem(Struct, frozen=True):
    """One fault of one input field; the problem names what is allowed."""

    field: str
    problem: str


class DtqError(Exception):
    """Anything dtq refuses or cannot do; ``code`` is stable and documented."""

    code: ClassVar[str] = "INTERNAL"


class InvalidTask(DtqError):
    """The submitted task breaks one or more bounds; ``problems`` lists all of them."""

    code = "INVALID_TASK"

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.problem}" for p in problems))
        self.problems = problems


class InvalidRequest(DtqError):
    """A query or an argument breaks its bounds."""

    code = "INVALID_REQUEST"

    def __init__(self, problems: tuple[FieldProblem, ...]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.problem}" for p in problems))
        self.problems = problems


class UnknownTaskType(DtqError):
    """No handler of this name is registered."""

    code = "UNKNOWN_TASK_TYPE"

    def __init__(self, task_type: str) -> None:
        super().__init__(f"task_type: no handler named {task_type!r} is registered")
        self.problems = (FieldProblem("task_type", f"no handler named {task_type!r} is registered"),)


class PayloadTooLarge(DtqError):
    """The payload's text, or the request around it, is larger than allowed."""

    code = "PAYLOAD_TOO_LARGE"

    def __init__(self, *, size: int, limit: int, field: str = "payload", unit: str = "bytes") -> None:
        super().__init__(f"{field}: {size} {unit}, at most {limit} are allowed")
        self.problems = (FieldProblem(field, f"{size} {unit}, at most {limit} are allowed"),)


class QueueFull(DtqError):
    """A limit on waiting work is reached; ``reason`` names which."""

    code = "QUEUE_FULL"

    def __init__(self, reason: str, *, value: int, limit: int, retry_after_s: int = 1) -> None:
        super().__init__(f"{reason}: {value} of {limit}")
        self.reason = reason
        self.retry_after_s = retry_after_s


class IdempotencyInProgress(DtqError):
    """The same idempotency key belongs to a task that has not ended."""

    code = "IDEMPOTENCY_IN_PROGRESS"

    def __init__(self, task_id: TaskId, *, status: TaskStatus | None) -> None:
        super().__init__(f"the idempotency key belongs to task {task_id}, which has not ended")
        self.task_id = task_id
        self.status = status


class TaskNotFound(DtqError):
    """No task of this id is stored."""

    code = "TASK_NOT_FOUND"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"no task {task_id}")
        self.task_id = task_id


class TaskTerminal(DtqError):
    """The task has ended already."""

    code = "TASK_TERMINAL"

    def __init__(self, task_id: TaskId, *, status: TaskStatus) -> None:
        super().__init__(f"task {task_id} has ended: {status}")
        self.status = status


class CancelRequested(DtqError):
    """The task is running; its worker has been asked to cancel it."""

    code = "CANCEL_REQUESTED"

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(f"task {task_id} is running; its cancellation is requested")


class NotDeadLettered(DtqError):
    """The task is not a dead letter."""

    code = "NOT_DEAD_LETTERED"

    def __init__(self, task_id: TaskId, *, status: TaskStatus) -> None:
        super().__init__(f"task {task_id} is {status}, not a dead letter")
        self.status = status


class NotInDeadLetters(DtqError):
    """The dead-letter stream does not hold this task: purged, trimmed or never there."""

    code = "NOT_IN_DLQ"

    def __init__(self, task_id: str) -> None:
        super().__init__(f"no dead letter of task {task_id}")


class DeadLetterDiscarded(DtqError):
    """The dead letter was discarded by an operator."""

    code = "DLQ_DISCARDED"

    def __init__(self, task_id: TaskId) -> None:
        super().__init__(f"the dead letter of task {task_id} was discarded")


class QueueNotFound(DtqError):
    """No queue of this name is known."""

    code = "QUEUE_NOT_FOUND"

    def __init__(self, queue: str) -> None:
        super().__init__(f"no queue {queue}")


class WorkerNotFound(DtqError):
    """No worker of this id is known."""

    code = "WORKER_NOT_FOUND"

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"no worker {worker_id}")


class Unauthorized(DtqError):
    """The API key is missing or wrong."""

    code = "UNAUTHORIZED"


class BrokerUnavailable(DtqError):
    """The broker cannot be reached or refuses to work; nothing is known to have been done."""

    code = "BROKER_UNAVAILABLE"


class BrokerRefused(BrokerUnavailable):
    """The broker is there and refuses one request, as it would its repeat; that says nothing of any other request."""


class RecordUnreadable(BrokerRefused):
    """What is stored is not what dtq wrote, for somebody changed it: trying again does not help until it is mended."""

    code = "RECORD_UNREADABLE"
    advice: ClassVar[str] = "trying again does not help: see `dtq doctor`"


class BrokerOutOfMemory(BrokerUnavailable):
    """The broker has no memory for new work; what finishes work still runs."""


class BrokerBehind(BrokerUnavailable):
    """So much waits for the broker already that nothing more may: nothing of this was done."""


class OutcomeUnknown(BrokerUnavailable):
    """The request was sent and no answer came: it may or may not have been done."""


class StepStopped(OutcomeUnknown):
    """The broker is there and stops one step half-way, as often as it is sent; that says nothing of any other step."""


def doubted(error: DtqError) -> DtqError:
    """Return what a refusal says where an earlier try of the same request may have been carried out, or may be yet.

    Neither a broker that is away by now nor a limit that is reached by now denies that.
    """
    if isinstance(error, OutcomeUnknown) or not isinstance(error, (BrokerUnavailable, QueueFull)):
        return error
    return OutcomeUnknown(f"an earlier try may have been carried out, of which no answer came; then: {text_of(error)}")


OF_ONE_REQUEST: Final = (BrokerRefused, StepStopped)
"""What the broker does with one request, and says nothing of any other."""


def is_outage(error: BaseException) -> TypeGuard[BrokerUnavailable]:
    """Tell whether *error* says that the broker is away, and not only that it will not do this one thing."""
    # isinstance asks a stranger's __class__, which may raise
    kind = type(error)
    return issubclass(kind, BrokerUnavailable) and not issubclass(kind, OF_ONE_REQUEST)


class UnsuitableBroker(DtqError):
    """The broker's server is too old, set up wrongly, or forbids what dtq needs; the message says what to change."""

    code = "UNSUITABLE_BROKER"
