"""Many submissions in one request: one answer each, in order, and no bad one harms another."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from litestar import Request, post
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dtq.application.admitting import MAX_SUBMISSIONS
from dtq.application.creating import Submitted
from dtq.application.pace import PIECE_BYTES, Pace
from dtq.application.tasks import TaskService
from dtq.domain.errors import DtqError, FieldProblem, InvalidRequest, PayloadTooLarge
from dtq.domain.json_text import MAX_DEPTH
from dtq.domain.status import TaskStatus
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.answering import answer_with
from dtq.entrypoints.http.describe import answer, operation, problems
from dtq.entrypoints.http.errors import Problem, problem_of
from dtq.entrypoints.http.headers import check_content_type
from dtq.entrypoints.http.metrics import count_unread
from dtq.entrypoints.http.queries import AnyRequest
from dtq.entrypoints.http.schemas import task_fields

MAX_TOKENS: Final = 1_000_000
"""A body with more strings and brackets is not looked through for the item that nests too deep."""

# named here, since to look up a member of an enumeration takes longer than to compare it
_OK: Final = HTTPStatus.OK.value
_ACCEPTED: Final = HTTPStatus.ACCEPTED.value

_TOKENS_AT_ONCE: Final = 10_000
_TOKENS: Final = re.compile(rb'"(?:[^"\\]+|\\.)*"?|[\[\]{}]', re.DOTALL)
_KEPT_DEPTH: Final = 2 * MAX_DEPTH


class BatchItem(Struct, frozen=True, kw_only=True):
    """What became of one submission: its task where there is one, otherwise the problem."""

    index: Annotated[int, Meta(description="The place of the submission in the request, from 0.")]
    status_code: Annotated[int, Meta(description="The status that the submission would have been answered with alone.")]
    task_id: str | UnsetType = UNSET
    status: TaskStatus | UnsetType | None = UNSET
    duplicate: bool | UnsetType = UNSET
    problem: Problem | UnsetType = UNSET


class BatchAnswer(Struct, frozen=True, kw_only=True):
    """One result for each submission, in the order of the request."""

    results: list[BatchItem]
    accepted: Annotated[int, Meta(description="How many were accepted as new tasks.")]
    duplicates: Annotated[int, Meta(description="How many stand for tasks that have ended already.")]
    refused: Annotated[int, Meta(description="How many were refused.")]


class _Batch(Struct, forbid_unknown_fields=True):
    tasks: list[Raw]


_decode: Final = msgspec.json.Decoder(_Batch).decode


@post(
    "/batch",
    status_code=HTTPStatus.OK,
    opt={"open_action": "task.submit"},
    operation_class=operation(body="SubmitBatch"),
    operation_id="submit_batch",
    summary="Submit many tasks",
    responses={
        HTTPStatus.OK: answer(BatchAnswer, "One result for each submission, in order", examples.BATCH),
        **problems("INVALID_REQUEST", "ORIGIN_NOT_ALLOWED", "PAYLOAD_TOO_LARGE"),
    },
)
async def submit_batch() -> ASGIApp:
    """Accept up to 1,000 tasks. Each is accepted or refused by itself; each may carry its own idempotency key."""
    return _submitted


async def _submitted(scope: Scope, receive: Receive, send: Send) -> None:
    request: AnyRequest = Request(scope, receive, send)
    opt = request.route_handler.opt
    tasks: TaskService = opt["tasks"]()
    try:
        check_content_type(request.headers)
        if "idempotency-key" in request.headers:
            fault = "belongs to one task: name it in each item instead"
            raise InvalidRequest((FieldProblem("Idempotency-Key", fault),))
        parts = await _items(await request.body(), Pace(opt["clock"]()))
    except (DtqError, HTTPException) as error:
        count_unread(error, tasks=tasks)
        raise
    answers = await tasks.submit_each(parts, read=partial(_fields, limit=opt["max_item_bytes"]))
    body = _answer([_result(index, answer) for index, answer in enumerate(answers)])
    await answer_with(body, send=send, status=HTTPStatus.OK)


async def _items(body: bytes, pace: Pace) -> Sequence[bytes]:
    """Part a request into its submissions. Raises InvalidRequest, or PayloadTooLarge."""
    try:
        batch = await _parted(body, pace)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest((FieldProblem("body", f'must be a JSON object {{"tasks": [...]}}: {error}'),)) from error
    if not batch.tasks:
        raise InvalidRequest((FieldProblem("tasks", f"must be 1..{MAX_SUBMISSIONS} submissions"),))
    if len(batch.tasks) > MAX_SUBMISSIONS:
        raise PayloadTooLarge(size=len(batch.tasks), limit=MAX_SUBMISSIONS, field="tasks", unit="submissions")
    return [bytes(item) for item in batch.tasks]


async def _parted(body: bytes, pace: Pace) -> _Batch:
    try:
        return _decode(body)
    except RecursionError as error:
        if sum(map(body.count, (b"[", b"]", b"{", b"}"))) + body.count(b'"') // 2 > MAX_TOKENS:
            raise InvalidRequest((FieldProblem("body", f"nested deeper than {MAX_DEPTH} levels"),)) from error
    # one item that nests deeper than any parser follows is to harm no other
    return _decode(await _pruned(body, pace))


async def _pruned(body: bytes, pace: Pace) -> bytes:
    """Leave out what nests so deep that it is refused anyway; what it stood in is still too deep."""
    kept: list[bytes] = []
    depth = begin = 0
    for number, token in enumerate(_TOKENS.finditer(body)):
        if number % _TOKENS_AT_ONCE == 0:
            await pace.done(PIECE_BYTES)
        match token.group():
            case b"[" | b"{":
                depth += 1
                if depth == _KEPT_DEPTH:
                    kept.append(body[begin : token.end()])
                    begin = len(body)
            case b"]" | b"}":
                if depth == _KEPT_DEPTH:
                    begin = token.start()
                depth -= 1
            case _:
                pass
    return b"".join([*kept, body[begin:]])


def _fields(item: bytes, *, limit: int) -> Mapping[str, object]:
    """Read a submission, and do not look into one that is too large to be any."""
    if len(item) > limit:
        raise PayloadTooLarge(size=len(item), limit=limit, field="item")
    return task_fields(item)


def _result(index: int, result: Submitted | DtqError) -> BatchItem:
    if isinstance(result, DtqError):
        problem = problem_of(result)
        return BatchItem(index=index, status_code=problem.status, problem=problem, task_id=problem.task_id)
    return BatchItem(
        index=index,
        status_code=_OK if result.duplicate else _ACCEPTED,
        task_id=result.task_id,
        status=None if result.task is None else result.task.status,
        duplicate=result.duplicate,
    )


def _answer(results: list[BatchItem]) -> BatchAnswer:
    return BatchAnswer(
        results=results,
        accepted=sum([result.status_code == _ACCEPTED for result in results]),
        duplicates=sum([result.duplicate is True for result in results]),
        refused=sum([result.problem is not UNSET for result in results]),
    )
