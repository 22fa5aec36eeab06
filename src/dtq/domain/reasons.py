"""Why a task is not running and what happens next: codes for programs, sentences for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from dtq.domain.task import Task

Figure = int | float | str | datetime


class ReasonCode(StrEnum):
    """What keeps a task, or what it does; a code never changes its meaning."""

    RECORD_UNREADABLE = "record_unreadable"
    ENDED = "ended"
    HOMELESS = "homeless"
    PRIORITY_UNREADABLE = "priority_unreadable"
    RUNNING = "running"
    CANCEL_REQUESTED = "cancel_requested"
    READ = "read"
    HANDED_BACK = "handed_back"
    LOST = "lost"
    DELAYED = "delayed"
    RETRY = "retry"
    DUE = "due"
    NO_LEADER = "no_leader"
    TTL_OVER = "ttl_over"
    PAUSED = "paused"
    NO_WORKER = "no_worker"
    WORKERS_STARTING = "workers_starting"
    WORKERS_DRAINING = "workers_draining"
    NO_WORKER_FOR_TYPE = "no_worker_for_type"
    ALL_BUSY = "all_busy"
    AHEAD = "ahead"
    TYPE_NOT_EVERYWHERE = "type_not_everywhere"
    NOTHING = "nothing"


class NextCode(StrEnum):
    """What happens next, or what somebody has to do; a code never changes its meaning."""

    NOTHING = "nothing"
    REQUEUE = "requeue"
    SUBMIT_AGAIN = "submit_again"
    MEND = "mend"
    REHOME = "rehome"
    RESUME = "resume"
    START_WORKER = "start_worker"
    FAIL_UNKNOWN_TYPE = "fail_unknown_type"
    EXPIRE = "expire"
    MOVE_WHEN_DUE = "move_when_due"
    WAIT_FOR_TURN = "wait_for_turn"
    START = "start"
    TAKE_OVER = "take_over"
    FINISH = "finish"
    CANCEL = "cancel"


class Reason(Struct, frozen=True, kw_only=True):
    """One thing that holds of a task: a clause that says so, and its figures; ``about`` names those not exact."""

    code: ReasonCode
    text: str
    figures: Mapping[str, Figure] = {}
    about: tuple[str, ...] = ()


class Next(Struct, frozen=True, kw_only=True):
    """What happens next, in one sentence or two."""

    code: NextCode
    text: str


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a task is not running, what keeps it most first; ``task`` None where its record cannot be read."""

    task: Task | None
    at: datetime
    reasons: Sequence[Reason]
    next: Next
