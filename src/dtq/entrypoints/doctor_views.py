"""What an examination shows, by HTTP and on the command line."""

from math import ceil
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from dtq.application.reports import Group, Report
from dtq.domain.diagnoses import DIAGNOSES
from dtq.domain.text import clean

_SHOWN = 500


class FoundBody(Struct, frozen=True, kw_only=True):
    """One thing that is wrong; `subject` names it among those of its kind."""

    subject: str
    detail: str
    task_id: str | None
    queue: str | None
    is_repaired: Annotated[bool, Meta(description="What became of it.")] | UnsetType = UNSET


class FindingBody(Struct, frozen=True, kw_only=True):
    """What is wrong of one kind: what it means, and what repairs it."""

    kind: str
    count: Annotated[int, Meta(description="How many there are; at least so many where `at_least` is true.")]
    at_least: bool
    meaning: str
    remedy: str
    is_repaired: Annotated[bool, Meta(description="Whether a repair is tried; what it cannot do is for a person.")]
    examples: Annotated[list[FoundBody], Meta(description="The first of them, up to 50.")]
    repaired: int | UnsetType = UNSET
    left: int | UnsetType = UNSET
    reasons: Annotated[list[str], Meta(description="Why some are left.")] | UnsetType = UNSET


class SuspicionBody(Struct, frozen=True, kw_only=True):
    """What would be wrong if it stayed so, and after how many seconds the first of it is believed."""

    kind: str
    count: int
    believed_in_s: float
    subjects: Annotated[list[str], Meta(description="The first of them, up to 50.")]


class NotExaminedBody(Struct, frozen=True, kw_only=True):
    """What could not be looked at, and why."""

    what: str
    why: str


class ExaminationBody(Struct, frozen=True, kw_only=True):
    """An examination. `healthy` where nothing is wrong, or nothing any more; `advice` is no part of that."""

    healthy: bool
    examined: Annotated[int, Meta(description="How many things were looked at.")]
    findings: list[FindingBody]
    suspected: list[SuspicionBody]
    not_examined: list[NotExaminedBody]
    advice: list[str]


def examination_body(report: Report, *, is_repair: bool = False) -> ExaminationBody:
    """Show what an examination found and, where it was one to repair, what became of it."""
    return ExaminationBody(
        healthy=report.is_healthy,
        examined=report.examined,
        findings=[_finding_body(group, is_repair=is_repair) for group in report.groups],
        suspected=[
            SuspicionBody(
                kind=one.kind,
                count=one.count,
                believed_in_s=ceil(one.ripe_in.total_seconds() * 10) / 10,
                subjects=[clean(subject) for subject in one.subjects],
            )
            for one in report.suspicions
        ],
        not_examined=[NotExaminedBody(what=one.what, why=clean(one.why, limit=_SHOWN)) for one in report.denied],
        advice=[clean(text, limit=_SHOWN) for text in report.advice],
    )


def _finding_body(group: Group, *, is_repair: bool) -> FindingBody:
    diagnosis = DIAGNOSES[group.kind]
    return FindingBody(
        kind=group.kind,
        count=group.count,
        at_least=not group.is_exact,
        meaning=diagnosis.meaning,
        remedy=diagnosis.remedy,
        is_repaired=diagnosis.is_repaired,
        examples=_found(group),
        repaired=group.repaired if is_repair else UNSET,
        left=group.left if is_repair else UNSET,
        reasons=[clean(text, limit=_SHOWN) for text in group.reasons] if is_repair else UNSET,
    )


def _found(group: Group) -> list[FoundBody]:
    return [
        FoundBody(
            subject=clean(one.subject),
            detail=clean(one.detail, limit=_SHOWN),
            task_id=one.task_id,
            queue=one.queue,
            is_repaired=group.outcomes[number] is None if group.outcomes else UNSET,
        )
        for number, one in enumerate(group.examples)
    ]
