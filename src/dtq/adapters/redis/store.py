"""Changes made real, and tasks read back."""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Final, TypeAlias, TypeVar

from dtq.adapters.redis.client import WRONG_TYPE, Rejected, Reply, checked
from dtq.adapters.redis.codec import PAYLOAD, SNAPSHOT, UnreadableRecord, Values, task_of
from dtq.adapters.redis.description import Forms
from dtq.adapters.redis.envelope import Answered, Envelope, envelopes
from dtq.adapters.redis.forms import Form, Meaning
from dtq.adapters.redis.keys import MAX_RECENT
from dtq.adapters.redis.link import Link, written
from dtq.adapters.redis.moves import Move
from dtq.adapters.redis.scripts import ScriptCall
from dtq.adapters.redis.wire import read_record
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change, Requirement
from dtq.domain.errors import BrokerUnavailable, OutcomeUnknown, RecordUnreadable
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task, TaskId
from dtq.ports.answers import (
    Admission,
    Already,
    Applied,
    Broken,
    CommitAnswer,
    Conflict,
    CreateAnswer,
    Full,
    KeyTaken,
    LimitName,
    PartlyAnswered,
    Refused,
)
from dtq.ports.broker import Recent

_STATUSES: Final = frozenset(TaskStatus)

CHUNK: Final = 500
"""How many tasks a listing looks at in one trip."""

Answer = TypeVar("Answer", bound=CommitAnswer | CreateAnswer)
Acts = TypeVar("Acts", bound=Sequence[object])

Act: TypeAlias = tuple[Move, Form[Move, Requirement]]
_Plain: TypeAlias = Applied | Already | Conflict | Broken


def create(
    link: Link, forms: Forms, admissions: Sequence[Admission], *, limits: BrokerLimits
) -> Coroutine[None, None, Sequence[CreateAnswer]]:
    """Bring tasks into being, as the port promises; the first request is written now, and sent when this is awaited.

    Of large tasks there are several, each written in its turn: all at once would hold others up.
    """
    moves = [Move(admission.change, replaces=admission.replaces) for admission in admissions]
    acts = [(move, forms.of_admission(move, limits=limits)) for move in moves]
    calls = ((written(envelope), some) for envelope, some in envelopes(acts, _fill))
    first = list(islice(calls, 1))
    understand = partial(_understood, otherwise=partial(_not_admitted, limits=limits))
    return _carried_out(link, chain(first, calls), understand, total=len(acts))


async def commit(link: Link, forms: Forms, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
    """Make changes real, as the port promises; with a new life among them, all of one trip need free memory."""
    calls = ((written(envelope), acts) for envelope, acts in packed(forms, changes))
    return await _carried_out(link, calls, understood, total=len(changes))


async def _carried_out(
    link: Link,
    calls: Iterable[tuple[ScriptCall, Acts]],
    understand: Callable[[Sequence[Reply], Acts], Sequence[Answer]],
    *,
    total: int,
) -> Sequence[Answer]:
    """Make calls one after the other, up to one that fails. Raises PartlyAnswered where that is not the first."""
    answers: list[Answer] = []
    for asked, acts in calls:
        try:
            replies = await link.scripts.carry_out(asked)
        except BrokerUnavailable as error:
            if not answers:
                raise
            others = [_unsent(error)] * (total - len(answers) - len(acts))
            raise PartlyAnswered([*answers, *[error] * len(acts), *others]) from error
        answers += understand(replies, acts)
    return answers


def _unsent(error: BrokerUnavailable) -> BrokerUnavailable:
    """Return what is told of an act that did not come up since an earlier one failed by *error*."""
    return BrokerUnavailable(f"nothing of it was sent: {error}") if isinstance(error, OutcomeUnknown) else error


def packed(forms: Forms, changes: Sequence[Change]) -> Iterator[tuple[Envelope, Sequence[Act]]]:
    """Put changes into as few envelopes as hold them, each returned with what it holds."""
    moves = [Move(change) for change in changes]
    return envelopes([(move, forms.of_change(move)) for move in moves], _fill)


def understood(replies: Sequence[Reply], acts: Sequence[Act]) -> Sequence[CommitAnswer]:
    """Read the answers of commit.lua to changes."""
    return _understood(replies, acts, otherwise=_refused)


async def load(link: Link, task_id: TaskId) -> Task | None:
    """Return a task with its payload. Raises RecordUnreadable."""
    *values, payload = await link.client.call("HMGET", link.keys.task(task_id), *SNAPSHOT, PAYLOAD)
    try:
        return task_of(values, task_id=task_id, payload=payload)
    except UnreadableRecord as error:
        raise RecordUnreadable(str(error)) from error


async def recent(link: Link, *, queue: QueueName | None, status: TaskStatus | None, limit: int) -> Recent:
    """Return the newest tasks that match, without payload."""

    def matches(task: Task) -> bool:
        return task.queue == (queue or task.queue) and task.status is (status or task.status)

    matching: list[Task] = []
    unreadable = 0
    # without a filter the first ids do, unless they are of nobody; with one, many may have to be looked at
    first, chunk = 0, CHUNK if queue or status else min(limit, CHUNK)
    while first < MAX_RECENT:
        last = min(first + chunk, MAX_RECENT) - 1
        ids = await link.client.call("ZREVRANGE", link.keys.recent, first, last)
        wanted = ids if chunk < CHUNK else await _of_interest(link, ids, queue=queue, status=status)
        for task_id, values in zip(wanted, await _records(link, wanted, SNAPSHOT), strict=True):
            try:
                task = task_of(values, task_id=task_id)
            except UnreadableRecord:
                unreadable += 1
                continue
            if task is not None and matches(task):
                matching.append(task)
            if len(matching) == limit:
                return Recent(matching, unreadable)
        if len(ids) < chunk:
            break
        first, chunk = last + 1, CHUNK
    return Recent(matching, unreadable)


async def result(link: Link, task_id: TaskId) -> str | None:
    """Return the text of a task's result."""
    text: str | None = await link.client.call("GET", link.keys.result(task_id))
    return text


async def _of_interest(
    link: Link, ids: Sequence[TaskId], *, queue: QueueName | None, status: TaskStatus | None
) -> list[TaskId]:
    """Choose by two fields only, since most tasks do not match a rare status."""

    def may_match(values: Values) -> bool:
        if isinstance(values, str):
            return True
        its_queue, its_status = values
        is_of_queue = its_queue is not None and its_queue == (queue or its_queue)
        return is_of_queue and (its_status == (status or its_status) or its_status not in _STATUSES)

    found = await _records(link, ids, ("queue", "status"))
    return [task_id for task_id, values in zip(ids, found, strict=True) if may_match(values)]


async def read_many(link: Link, ids: Sequence[TaskId], fields: Sequence[str]) -> list[Sequence[str | None]]:
    """Return fields of tasks, read in one trip; None for each that is not there, or not in a key of ours."""
    found = await _records(link, ids, fields)
    return [[None] * len(fields) if isinstance(values, str) else values for values in found]


async def _records(link: Link, ids: Sequence[TaskId], fields: Sequence[str]) -> list[Values]:
    """Return the same, and what is wrong with a key that is none of ours as text."""
    replies = await link.client.pipeline([("HMGET", link.keys.task(task_id), *fields) for task_id in ids])
    return [str(reply) if is_of_another_type(reply) else checked(reply) for reply in replies]


def is_of_another_type(reply: Reply) -> bool:
    """Tell whether a stranger's key stands where one of ours is looked for."""
    return isinstance(reply, Rejected) and reply.reply_code == WRONG_TYPE


async def sound(link: Link, streams: Sequence[str]) -> list[str]:
    """Return *streams* without those that a stranger's key of another type stands for."""
    lengths = await link.client.pipeline([("XLEN", stream) for stream in streams])
    return [stream for stream, length in zip(streams, lengths, strict=True) if not is_of_another_type(length)]


def readable(values: Values, *, task_id: str, payload: str | None = None) -> Task | None:
    """Read a task for a listing, which goes on without the records that somebody spoiled."""
    try:
        return task_of(values, task_id=task_id, payload=payload)
    except UnreadableRecord:
        return None


def _understood(
    replies: Sequence[Reply],
    acts: Sequence[tuple[Move, Form[Move, Meaning]]],
    *,
    otherwise: Callable[[Reply, Move, Sequence[Meaning]], Answer],
) -> list[_Plain | Answer]:
    """Read the answers to acts; *otherwise* reads that of one that a guard refused, by the meanings of its guards."""
    return [
        _plain(reply, move) or otherwise(reply, move, form.meanings)
        for reply, (move, form) in zip(replies, acts, strict=True)
    ]


def _fill(envelope: Envelope, act: tuple[Move, Form[Move, Meaning]]) -> None:
    move, form = act
    form.fill(envelope, move, version=move.version, token=move.after.version)


def _plain(reply: Reply, move: Move) -> _Plain | None:
    """Read an answer of commit.lua; None where a guard refused, which means different things to different callers."""
    if isinstance(reply, str):
        return Applied(move.made(reply))
    code, first, *_ = reply
    try:
        match code:
            case Answered.MADE:
                # the step that may be left out is the one that writes the idempotency record
                return Applied(move.made(first), detached=True)
            case Answered.KNOWN:
                return Already(task_of(first, task_id=move.change.after.task_id))
            case Answered.MOVED:
                return Conflict(task_of(first, task_id=move.change.after.task_id))
            case Answered.STOPPED:
                return Broken(first)
            case _:
                return None
    except UnreadableRecord as error:
        return Broken(str(error))


def _refused(reply: Reply, move: Move, meanings: Sequence[Requirement]) -> Refused | Broken:
    _, number, _, snapshot = reply
    requirement = meanings[number - 1]
    try:
        return Refused(requirement=requirement, task=task_of(snapshot, task_id=move.change.after.task_id))
    except UnreadableRecord as error:
        return Broken(str(error))


def _not_admitted(
    reply: Reply, _: Move, meanings: Sequence[LimitName | None], *, limits: BrokerLimits
) -> KeyTaken | Full:
    number, found = reply[1:3]
    limit = meanings[number - 1]
    if limit is not None:
        return Full(reason=limit, value=int(found), limit=_bound(limit, limits))
    return KeyTaken(record=read_record(found), text=found)


def _bound(limit: LimitName, limits: BrokerLimits) -> int:
    match limit:
        case "queue_full":
            return limits.queue_depth
        case "schedule_full":
            return limits.scheduled
        case "too_many_queues":
            return limits.queues
