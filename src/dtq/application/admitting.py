"""Many submissions, admitted one by one, so that the largest batch holds nobody up."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from dtq.application.pace import PIECE_BYTES, Pace
from dtq.application.rejections import queue_named, tell_rejected
from dtq.application.requests import refuse
from dtq.domain.admission import AdmissionRules, TaskSpec, admit
from dtq.domain.errors import DtqError, FieldProblem
from dtq.ports.environment import Clock
from dtq.ports.events import Observer

MAX_SUBMISSIONS: Final = 1_000
"""The most tasks that one call may submit."""

_MEMBERS_BYTES: Final = 1700
"""What a submission costs beside its texts."""

Given = TypeVar("Given")
Begun = TypeVar("Begun")

Fields = Mapping[str, object]
"""A submission as it is admitted: payload and metadata as JSON text."""


async def admitted(
    submissions: Sequence[Given],
    *,
    read: Callable[[Given], Fields],
    rules: AdmissionRules,
    observer: Observer,
    clock: Clock,
    begin: Callable[[TaskSpec], Begun],
) -> list[Begun | DtqError]:
    """Begin what each of up to 1,000 submissions asks for, or say why it is refused, which *observer* hears.

    What is begun goes on while others are looked into. Raises InvalidRequest where they are none, or too many.
    """
    if not 0 < len(submissions) <= MAX_SUBMISSIONS:
        refuse([FieldProblem("submissions", f"must be 1..{MAX_SUBMISSIONS} tasks, not {len(submissions)}")])
    pace = Pace(clock)
    answers: list[Begun | DtqError] = []
    for submission in submissions:
        # how much of what is refused was looked into is not known
        fields, size = None, PIECE_BYTES
        try:
            fields = read(submission)
            spec = admit(fields, rules=rules)
            size = _MEMBERS_BYTES + len(spec.payload) + len(spec.metadata)
            answers.append(begin(spec))
        except DtqError as error:
            tell_rejected(error, queue=queue_named(fields), observer=observer)
            answers.append(error)
        await pace.done(size)
    return answers
