"""The endpoint that says why a task is not running."""

from http import HTTPStatus

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath

from dtq.application.explaining import ExplanationService
from dtq.entrypoints.explanation_views import ExplanationBody, explanation_body
from dtq.entrypoints.http import examples
from dtq.entrypoints.http.describe import TASK_ID, answer, operation, problems


@get(
    "/{task_id:str}/explanation",
    operation_class=operation(TASK_ID),
    operation_id="explain_task",
    summary="Explain a task",
    responses={
        HTTPStatus.OK: answer(ExplanationBody, "Why it is not running, and what happens next", examples.EXPLANATION),
        **problems("INVALID_REQUEST", "TASK_NOT_FOUND", "RECORD_UNREADABLE", "BROKER_UNAVAILABLE"),
    },
)
async def explain(task_id: FromPath[str], explaining: NamedDependency[ExplanationService]) -> ExplanationBody:
    """Say why a task is not running, what keeps it most first, and what happens next; it changes nothing."""
    return explanation_body(task_id, await explaining.explain(task_id))
