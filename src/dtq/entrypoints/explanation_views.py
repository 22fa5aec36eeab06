"""What people and programs are shown of an explanation: the same members in HTTP answers and on the command line."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from dtq.domain.reasons import Explanation, NextCode, Reason, ReasonCode
from dtq.domain.status import TaskStatus

_SENTENCE = Meta(description="For people, and may change.")


class ReasonBody(Struct, frozen=True, kw_only=True):
    """One thing that keeps a task, or that it does. Its figures depend on its code; `about` names those not exact."""

    code: Annotated[ReasonCode, Meta(description="Never changes its meaning.")]
    text: Annotated[str, _SENTENCE]
    figures: dict[str, Any]
    about: list[str]


class NextBody(Struct, frozen=True, kw_only=True):
    """What happens next, or what somebody has to do."""

    code: Annotated[NextCode, Meta(description="Never changes its meaning.")]
    text: Annotated[str, _SENTENCE]


class ExplanationBody(Struct, frozen=True, kw_only=True):
    """Why a task is not running, what keeps it most first. Where its record cannot be read, what that says is null."""

    task_id: str
    status: TaskStatus | None
    task_type: str | None
    queue: str | None
    priority: int | None
    at: Annotated[datetime, Meta(description="When this was so, by the broker's clock.")]
    reasons: list[ReasonBody]
    next: NextBody


def explanation_body(task_id: str, explanation: Explanation) -> ExplanationBody:
    """Show an explanation of the task of this id."""
    task = explanation.task
    return ExplanationBody(
        task_id=task_id,
        status=None if task is None else task.status,
        task_type=None if task is None else task.task_type,
        queue=None if task is None else task.queue,
        priority=None if task is None else task.priority,
        at=explanation.at,
        reasons=[_reason(reason) for reason in explanation.reasons],
        next=NextBody(code=explanation.next.code, text=explanation.next.text),
    )


def _reason(reason: Reason) -> ReasonBody:
    about = [name for name in reason.about if name in reason.figures]
    return ReasonBody(code=reason.code, text=reason.text, figures=dict(reason.figures), about=about)
