"""The crash matrix: every step of a task's life, every fault at it, and the outcome that the document promises."""

from datetime import timedelta

from dtq.adapters.redis.ready import HANDED_BACK
from dtq.adapters.redis.scripts import ADMIT, EXTEND, FETCH, TAKE_DUE
from dtq.domain.status import TaskStatus
from tests.crash import scenes
from tests.crash.cells import Fault, Outcome, Point
from tests.crash.ground import VISIBILITY_MS

S = TaskStatus


def _commands(text: str) -> frozenset[str]:
    return frozenset({"hmget", "time", *text.split()})


F = Fault
CALM = (F.NONE, F.REQUEST_LOST, F.REPLY_LOST, F.COMMANDS_DENIED, F.KEYS_DENIED)
"""After these the actor lives, and makes its step as if nothing had been."""

ADMITTING = "get xlen hlen set hset pexpire zadd zremrangebyrank hincrby"
REMOVING = "hset pexpire set getrange publish xdel xack"


def _calm(outcome: Outcome) -> dict[Fault, Outcome]:
    return dict.fromkeys(CALM, outcome)


def _event(name: str) -> bytes:
    return f'"{name}"'.encode()


_STARTED = b'Z","type":"TASK_STARTED"'
"""Of a start that was decided for a task; in what a fetch carries to start any other the moment stands elsewhere."""


POINTS = (
    Point(
        name="submit",
        scene=scenes.SUBMIT,
        word=_event("TASK_QUEUED"),
        commands=_commands(f"{ADMITTING} xadd publish"),
        outcomes={
            **_calm(Outcome(answers=(202,))),
            F.KILLED_BEFORE: Outcome(answers=(202,)),
            F.KILLED_AFTER: Outcome(answers=(409,)),
        },
    ),
    Point(
        name="submit, delayed",
        scene=scenes.SUBMIT_DELAYED,
        word=ADMIT.digest.encode(),
        commands=_commands(f"{ADMITTING} zcard"),
        outcomes={
            **_calm(Outcome(answers=(202,))),
            F.KILLED_BEFORE: Outcome(answers=(202,)),
            F.KILLED_AFTER: Outcome(answers=(409,)),
        },
    ),
    Point(
        name="read and start",
        scene=scenes.RUN_KEYLESS,
        word=FETCH.digest.encode(),
        commands=_commands("exists xreadgroup"),
        is_single=True,
        outcomes={
            **_calm(Outcome()),
            F.COMMANDS_DENIED: Outcome(takes_over=True),
            F.KEYS_DENIED: Outcome(takes_over=True),
            F.KILLED_BEFORE: Outcome(),
            F.KILLED_AFTER: Outcome(attempt=2, starts=(2,), takes_over=True),
        },
    ),
    Point(
        name="read",
        scene=scenes.RUN,
        word=FETCH.digest.encode(),
        commands=_commands("exists xreadgroup"),
        is_single=True,
        outcomes={
            **_calm(Outcome()),
            F.COMMANDS_DENIED: Outcome(takes_over=True),
            F.KEYS_DENIED: Outcome(takes_over=True),
            F.KILLED_BEFORE: Outcome(),
            F.KILLED_AFTER: Outcome(takes_over=True),
        },
    ),
    Point(
        name="start",
        scene=scenes.RUN,
        word=_STARTED,
        commands=_commands("xpending exists getrange set hset pexpire publish"),
        outcomes={
            **_calm(Outcome()),
            F.KILLED_BEFORE: Outcome(takes_over=True),
            F.KILLED_AFTER: Outcome(attempt=2, starts=(2,), takes_over=True),
        },
    ),
    Point(
        name="lease extension",
        scene=scenes.RUN_LONG,
        word=EXTEND.digest.encode(),
        commands=_commands("xclaim"),
        outcomes={
            **_calm(Outcome()),
            F.KILLED_BEFORE: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_AFTER: Outcome(attempt=2, starts=(1, 2), takes_over=True),
        },
    ),
    Point(
        name="finish: success",
        scene=scenes.RUN,
        word=_event("TASK_SUCCEEDED"),
        commands=_commands(REMOVING),
        outcomes={
            **_calm(Outcome()),
            F.KILLED_BEFORE: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_AFTER: Outcome(),
        },
    ),
    Point(
        name="finish: retry",
        scene=scenes.RUN_TWICE,
        word=_event("TASK_RETRY_SCHEDULED"),
        commands=_commands(f"{REMOVING} zadd hincrby"),
        outcomes={
            **_calm(Outcome(attempt=2, starts=(1, 2))),
            F.KILLED_BEFORE: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_AFTER: Outcome(attempt=2, starts=(1, 2), takes_over=True),
        },
    ),
    Point(
        name="finish: dead letter",
        scene=scenes.RUN_IN_VAIN,
        word=_event("TASK_DEAD_LETTERED"),
        commands=_commands(f"{REMOVING} xadd hget"),
        outcomes={
            **_calm(Outcome(status=S.DEAD_LETTERED)),
            F.KILLED_BEFORE: Outcome(status=S.DEAD_LETTERED, attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_AFTER: Outcome(status=S.DEAD_LETTERED),
        },
    ),
    Point(
        name="finish: cancelled",
        scene=scenes.FINISH_CANCELLED,
        word=_event("TASK_CANCELLED"),
        commands=_commands(REMOVING),
        outcomes={
            **_calm(Outcome(status=S.CANCELLED)),
            F.KILLED_BEFORE: Outcome(status=S.CANCELLED, takes_over=True),
            F.KILLED_AFTER: Outcome(status=S.CANCELLED),
        },
    ),
    Point(
        name="hand-back",
        scene=scenes.LEAVE,
        word=str(HANDED_BACK // timedelta(milliseconds=1)).encode(),
        commands=_commands("xpending xclaim") - {"hmget"},
        outcomes={
            F.NONE: Outcome(attempt=2, starts=(1, 2)),
            F.REQUEST_LOST: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.REPLY_LOST: Outcome(attempt=2, starts=(1, 2)),
            F.COMMANDS_DENIED: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KEYS_DENIED: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_BEFORE: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_AFTER: Outcome(attempt=2, starts=(1, 2)),
        },
    ),
    Point(
        name="take over",
        scene=scenes.TAKE_OVER,
        word=f"\r\n{VISIBILITY_MS}\r\n".encode(),
        commands=_commands("exists xpending xclaim xreadgroup"),
        is_single=True,
        outcomes={
            **_calm(Outcome(attempt=2, starts=(1, 2))),
            F.COMMANDS_DENIED: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KEYS_DENIED: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_BEFORE: Outcome(attempt=2, starts=(1, 2)),
            F.KILLED_AFTER: Outcome(attempt=2, starts=(1, 2), takes_over=True),
        },
    ),
    Point(
        name="start again",
        scene=scenes.TAKE_OVER,
        word=_STARTED,
        commands=_commands("xpending exists getrange set hset pexpire publish"),
        outcomes={
            **_calm(Outcome(attempt=2, starts=(1, 2))),
            F.KILLED_BEFORE: Outcome(attempt=2, starts=(1, 2), takes_over=True),
            F.KILLED_AFTER: Outcome(attempt=3, starts=(1, 3), takes_over=True),
        },
    ),
    Point(
        name="give up",
        scene=scenes.TAKE_OVER_LAST,
        word=_event("TASK_DEAD_LETTERED"),
        commands=_commands(f"{REMOVING} xadd hget xpending"),
        outcomes={
            **_calm(Outcome(status=S.DEAD_LETTERED)),
            F.KILLED_BEFORE: Outcome(status=S.DEAD_LETTERED, takes_over=True),
            F.KILLED_AFTER: Outcome(status=S.DEAD_LETTERED),
        },
    ),
    Point(
        name="take due",
        scene=scenes.BE_DUE,
        word=TAKE_DUE.digest.encode(),
        commands=_commands("get zrangebyscore zadd zrem"),
        is_single=True,
        outcomes={
            **_calm(Outcome()),
            F.COMMANDS_DENIED: Outcome(takes_over=True),
            F.KEYS_DENIED: Outcome(takes_over=True),
            F.REPLY_LOST: Outcome(takes_over=True),
            F.KILLED_BEFORE: Outcome(takes_over=True),
            F.KILLED_AFTER: Outcome(takes_over=True),
        },
    ),
    Point(
        name="promote",
        scene=scenes.BE_DUE,
        word=_event("TASK_QUEUED"),
        commands=_commands("xadd hget getrange set hset pexpire hincrby publish zrem"),
        is_single=True,
        outcomes={
            **_calm(Outcome()),
            F.COMMANDS_DENIED: Outcome(takes_over=True),
            F.KEYS_DENIED: Outcome(takes_over=True),
            F.KILLED_BEFORE: Outcome(takes_over=True),
            # it may have read the entry before it learns that there is one
            F.KILLED_AFTER: Outcome(takes_over=True),
        },
    ),
    Point(
        name="cancel: queued",
        scene=scenes.CANCEL_QUEUED,
        word=_event("TASK_CANCELLED"),
        commands=_commands(f"{REMOVING} sadd xadd"),
        outcomes={
            **_calm(Outcome(status=S.CANCELLED, attempt=0, starts=(), answers=(202,))),
            F.KILLED_BEFORE: Outcome(status=S.CANCELLED, attempt=0, starts=(), answers=(202,)),
            F.KILLED_AFTER: Outcome(status=S.CANCELLED, attempt=0, starts=(), answers=(410,)),
        },
    ),
    Point(
        name="cancel: delayed",
        scene=scenes.CANCEL_DELAYED,
        word=_event("TASK_CANCELLED"),
        commands=_commands("hset pexpire set getrange publish hincrby zrem xadd"),
        outcomes={
            **_calm(Outcome(status=S.CANCELLED, attempt=0, starts=(), answers=(202,))),
            F.KILLED_BEFORE: Outcome(status=S.CANCELLED, attempt=0, starts=(), answers=(202,)),
            F.KILLED_AFTER: Outcome(status=S.CANCELLED, attempt=0, starts=(), answers=(410,)),
        },
    ),
    Point(
        name="cancel: running",
        scene=scenes.CANCEL_RUNNING,
        word=_event("TASK_CANCEL_REQUESTED"),
        commands=_commands("hset pexpire set getrange publish xadd"),
        outcomes={
            **_calm(Outcome(status=S.CANCELLED, answers=(409,))),
            F.KILLED_BEFORE: Outcome(status=S.CANCELLED, answers=(409,)),
            F.KILLED_AFTER: Outcome(status=S.CANCELLED, answers=(409, 410)),
        },
    ),
    Point(
        name="requeue",
        scene=scenes.REQUEUE,
        word=_event("TASK_QUEUED"),
        commands=_commands("xadd hget getrange set hset pexpire hincrby publish xdel xrange xadd"),
        outcomes={
            **_calm(Outcome(status=S.DEAD_LETTERED, attempt=1, starts=(1, 1), answers=(202,))),
            F.KILLED_BEFORE: Outcome(status=S.DEAD_LETTERED, attempt=1, starts=(1, 1), answers=(202,)),
            F.KILLED_AFTER: Outcome(status=S.DEAD_LETTERED, attempt=1, starts=(1, 1), answers=(409,)),
        },
    ),
)
