"""The endpoints that examine what is stored, and repair it."""

from http import HTTPStatus

from litestar import get, post
from litestar.di import NamedDependency

from dtq.application.doctor import Doctor
from dtq.domain.audit import Actor
from dtq.entrypoints.doctor_views import ExaminationBody, examination_body
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.describe import answer, operation, problems


@get(
    "/api/v1/doctor",
    operation_class=operation(),
    operation_id="examine",
    summary="Examine what is stored",
    responses={
        HTTPStatus.OK: answer(ExaminationBody, "What was found, or nothing", examples.EXAMINED),
        **problems("INVALID_REQUEST", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def examine(doctor: NamedDependency[Doctor]) -> ExaminationBody:
    """Go through everything that is stored, without holding anybody up, and tell what is wrong. Nothing is changed.

    It takes two seconds where something seems wrong, and some ten more for each 100,000 tasks. One examination runs at
    a time; whoever asks meanwhile gets its answer.
    """
    return examination_body(await doctor.examine())


@post(
    "/repair",
    status_code=HTTPStatus.OK,
    opt={"action": "doctor.repair"},
    operation_class=operation(),
    operation_id="repair",
    summary="Examine what is stored, and repair it",
    responses={
        HTTPStatus.OK: answer(ExaminationBody, "What was found, and what became of it", examples.REPAIRED),
        **problems("INVALID_REQUEST", "UNAUTHORIZED", "ORIGIN_NOT_ALLOWED", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def repair(*, actor: NamedDependency[Actor], doctor: NamedDependency[Doctor]) -> ExaminationBody:
    """Go through everything that is stored, and repair what is safe to repair: at most 1,000 things of a kind."""
    return examination_body(await doctor.repair(by=actor), is_repair=True)
