"""How the actor is brought to the brink of each step. The line is set to stop or to lose that step before."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from tests.crash.ground import Case, Ground

Lead = Callable[[Ground], Case]
"""Makes the actor come to its step with a fresh task, and returns before it is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """``is_asked``: a client asks an API for the step. ``leaves``: the actor ends by itself once the step is over."""

    lead: Lead
    is_asked: bool = False
    leaves: bool = False


def _submit(ground: Ground, **fields: Any) -> Case:
    case = ground.new_case()
    case.path = "/api/v1/tasks"
    case.body = {"task_type": "brief", "payload": {}, **fields}
    ground.ask(case, api=ground.serving_actor())
    return case


def _act(ground: Ground, case: Case, path: str) -> Case:
    case.path = path.format(case.task_id)
    ground.ask(case, api=ground.serving_actor())
    return case


def _cancel_waiting(ground: Ground, **fields: Any) -> Case:
    return _act(ground, ground.submitted("brief", **fields), "/api/v1/tasks/{}/cancel")


def _cancel_running(ground: Ground) -> Case:
    case = ground.submitted("gated", gate=(key := uuid4().hex), key=key)
    ground.healthy_worker()
    ground.started(case)
    return _act(ground, case, "/api/v1/tasks/{}/cancel")


def _requeue(ground: Ground) -> Case:
    case = ground.submitted("hopeless")
    ground.healthy_worker()
    ground.ended(case)
    ground.dismiss_healthy_worker()
    return _act(ground, case, "/api/v1/dlq/{}/requeue")


def _run(ground: Ground, task_type: str = "brief", **fields: Any) -> Case:
    if ground.has_actor:
        return ground.submitted(task_type, **fields)
    # it finds the task as soon as it looks for one
    case = ground.submitted(task_type, **fields)
    ground.working_actor(ready=False)
    return case


def _run_gated(ground: Ground, **fields: Any) -> Case:
    key = uuid4().hex
    case = _run(ground, "gated", gate=key, key=key, **fields)
    ground.started(case)
    return case


def _be_due(ground: Ground) -> Case:
    if ground.has_actor:
        return ground.submitted("brief", delay_seconds=0.05)
    case = ground.submitted("brief", delay_seconds=0.05)
    ground.working_actor(ready=False)
    return case


def _finish_cancelled(ground: Ground) -> Case:
    case = _run_gated(ground)
    answer = ground.healthy_api().http.post(f"/api/v1/tasks/{case.task_id}/cancel")
    assert "CANCEL_REQUESTED" == answer.json()["code"]
    return case


def _leave(ground: Ground) -> Case:
    case = _run_gated(ground)
    ground.actor.terminate()
    return case


def _take_over(ground: Ground, **fields: Any) -> Case:
    """A worker dies with the task, long enough ago, and the actor looks for work."""
    if ground.has_actor:
        ground.retire_actor()
    key = uuid4().hex
    case = ground.submitted("gated", gate=key, key=key, **fields)
    first = ground.system.worker()
    ground.started(case)
    first.kill()
    ground.open_gates()
    ground.let_pass(first)
    ground.working_actor(ready=False)
    return case


SUBMIT = Scene(lead=_submit, is_asked=True)
SUBMIT_DELAYED = Scene(lead=partial(_submit, delay_seconds=0.2), is_asked=True)
CANCEL_QUEUED = Scene(lead=_cancel_waiting, is_asked=True)
CANCEL_DELAYED = Scene(lead=partial(_cancel_waiting, delay_seconds=600), is_asked=True)
CANCEL_RUNNING = Scene(lead=_cancel_running, is_asked=True)
REQUEUE = Scene(lead=_requeue, is_asked=True)
RUN = Scene(lead=_run)
RUN_KEYLESS = Scene(lead=partial(_run, is_keyless=True))
RUN_TWICE = Scene(lead=partial(_run, fails=1))
RUN_IN_VAIN = Scene(lead=partial(_run, task_type="hopeless"))
RUN_LONG = Scene(lead=_run_gated)
BE_DUE = Scene(lead=_be_due)
FINISH_CANCELLED = Scene(lead=_finish_cancelled)
LEAVE = Scene(lead=_leave, leaves=True)
TAKE_OVER = Scene(lead=_take_over)
TAKE_OVER_LAST = Scene(lead=partial(_take_over, max_attempts=1))
