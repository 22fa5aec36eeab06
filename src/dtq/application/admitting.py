"""Many submissions, admitted one by one, so that the largest batch holds nobody up."""

from collections.abc import Mapping, Sequence
from typing import Final

from dtq.application.pace import Pace
from dtq.application.rejections import Rejections
from dtq.application.requests import refuse
from dtq.domain.admission import AdmissionRules, TaskSpec, admit
from dtq.domain.errors import DtqError, FieldProblem
from dtq.ports.environment import Clock
from dtq.ports.events import Observer

MAX_SUBMISSIONS: Final = 1_000
"""The most tasks that one call may submit."""

_MEMBERS_BYTES: Final = 1024
"""What a submission costs beside its texts."""


async def admitted(
    submissions: Sequence[Mapping[str, object]], *, rules: AdmissionRules, observer: Observer, clock: Clock
) -> Sequence[TaskSpec | DtqError]:
    """Return what each of up to 1,000 submissions asks for, or why it is refused, which *observer* hears.

    Raises InvalidRequest where they are none, or too many.
    """
    if not 0 < len(submissions) <= MAX_SUBMISSIONS:
        refuse([FieldProblem("submissions", f"must be 1..{MAX_SUBMISSIONS} tasks, not {len(submissions)}")])
    pace = Pace(clock)
    answers: list[TaskSpec | DtqError] = []
    for fields in submissions:
        answers.append(_admitted(fields, rules=rules, observer=observer))
        await pace.done(_MEMBERS_BYTES + sum(len(value) for value in fields.values() if isinstance(value, str)))
    return answers


def _admitted(fields: Mapping[str, object], *, rules: AdmissionRules, observer: Observer) -> TaskSpec | DtqError:
    try:
        with Rejections(observer, fields):
            return admit(fields, rules=rules)
    except DtqError as error:
        return error
