"""What becomes of a task whose entry a worker has read: it runs, is about to, or has lost its worker."""

from datetime import datetime, timedelta

from dtq.domain.explained_waiting import all_busy, keeping_the_queue, once_resumed
from dtq.domain.phrases import moment_text, span, tenths
from dtq.domain.reasons import Figure, Next, NextCode, Reason, ReasonCode
from dtq.domain.standing import Holding, Standing
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, WorkerId
from dtq.domain.text import clean
from dtq.domain.workforce import Workforce


def held(
    task: Task, standing: Standing, *, workforce: Workforce, now: datetime, handed_back: timedelta
) -> tuple[list[Reason], Next]:
    """Explain a task that is running by its record, or whose entry is owned.

    An entry that has been idle for *handed_back* was handed back, not left.
    """
    holding = standing.holding
    if holding is None:
        # a running task's entry is owned, unless foul play has made the broker forget by whom
        return _abandoned(task, _unowned(task), standing=standing, workforce=workforce, idle=None)
    if holding.idle >= handed_back:
        return _abandoned(task, _handed_back(task, holding), standing=standing, workforce=workforce, idle=None)
    visibility = workforce.visibility
    is_alive = workforce.lives(holding.owner, silent=holding.idle)
    if not is_alive or (visibility is not None and holding.idle >= visibility):
        return _abandoned(
            task, _lost(task, holding, workforce), standing=standing, workforce=workforce, idle=holding.idle
        )
    if task.status is TaskStatus.RUNNING and task.worker_id == holding.owner:
        return _running(task, holding, workforce=workforce, now=now)
    paused = (one for one in keeping_the_queue(task, standing, workforce=workforce) if one.code is ReasonCode.PAUSED)
    reasons = [*paused, _read(task, holding, workforce)]
    if standing.paused:
        text = f"its worker hands it back; {once_resumed(workforce)}, it starts when its turn comes"
        return reasons, Next(code=NextCode.RESUME, text=text)
    return reasons, Next(code=NextCode.START, text="its worker starts it, or hands it back, within about a second")


def _running(task: Task, holding: Holding, *, workforce: Workforce, now: datetime) -> tuple[list[Reason], Next]:
    figures: dict[str, Figure] = {
        "worker_id": holding.owner,
        "attempt": task.attempt,
        "max_attempts": task.max_attempts,
        **_lease_figures(holding, workforce),
    }
    text = f"attempt {task.attempt} of {task.max_attempts} runs on {_shown(holding.owner)}"
    if task.started_at is not None:
        deadline = task.started_at + task.timeout
        left = deadline - now
        when = f"in {span(left)}" if left > timedelta() else f"{span(-left)} ago"
        text += f" since {moment_text(task.started_at)}; its deadline is {when}"
        figures |= {"started_at": task.started_at, "deadline_at": deadline, "deadline_in_s": tenths(left)}
    text += _lease_text(holding, workforce)
    reasons = [Reason(code=ReasonCode.RUNNING, text=text, figures=figures, about=("lease_left_s",))]
    if task.cancel_requested:
        reasons.append(Reason(code=ReasonCode.CANCEL_REQUESTED, text="its cancellation is requested"))
        text = "its worker tells the handler within about a second; it ends as canceled, whatever the handler does"
        return reasons, Next(code=NextCode.CANCEL, text=text)
    more = task.max_attempts - task.attempt
    then = (
        f"a failure that is worth another attempt is repeated, up to {more} more" if more else "it is its last attempt"
    )
    return reasons, Next(
        code=NextCode.FINISH, text=f"its worker records how it ends, at its deadline at the latest; {then}"
    )


def _read(task: Task, holding: Holding, workforce: Workforce) -> Reason:
    taken_over = task.status is TaskStatus.RUNNING
    how = f"has taken it over from {_shown(task.worker_id or '')}" if taken_over else "has read it"
    return Reason(
        code=ReasonCode.READ,
        text=f"worker {_shown(holding.owner)} {how} and not started it yet{_lease_text(holding, workforce)}",
        figures={"worker_id": holding.owner, **_lease_figures(holding, workforce)},
        about=("lease_left_s",),
    )


def _lost(task: Task, holding: Holding, workforce: Workforce) -> Reason:
    owner, silent = _shown(holding.owner), span(holding.idle)
    what = f"shows no life, and was last heard of {silent} ago"
    if workforce.lives(holding.owner, silent=holding.idle):
        what = f"lives, and has not extended its lease for {silent}"
    does = f"running attempt {task.attempt}" if task.status is TaskStatus.RUNNING else "which has read it"
    return Reason(
        code=ReasonCode.LOST,
        text=f"worker {owner}, {does}, {what}",
        figures={"worker_id": holding.owner, "idle_s": tenths(holding.idle), "attempt": task.attempt},
    )


def _unowned(task: Task) -> Reason:
    text = f"worker {_shown(task.worker_id or '')}, running attempt {task.attempt}, does not own its entry any more"
    return Reason(code=ReasonCode.LOST, text=text, figures={"worker_id": task.worker_id or "", "attempt": task.attempt})


def _handed_back(task: Task, holding: Holding) -> Reason:
    did = f"was running attempt {task.attempt}" if task.status is TaskStatus.RUNNING else "had read it"
    return Reason(
        code=ReasonCode.HANDED_BACK,
        text=f"worker {_shown(holding.owner)} {did} and gave it back",
        figures={"worker_id": holding.owner, "attempt": task.attempt},
    )


def _abandoned(
    task: Task, what: Reason, *, standing: Standing, workforce: Workforce, idle: timedelta | None
) -> tuple[list[Reason], Next]:
    """Explain a task that somebody else has to take over; *idle* None where it may be taken at once."""
    blocking = [*keeping_the_queue(task, standing, workforce=workforce), *all_busy(workforce)]
    reasons = [what, *blocking]
    if what.code is ReasonCode.HANDED_BACK:
        # nothing is wrong with it: what keeps it is that nobody may take it
        reasons.sort(key=lambda reason: reason.code is not ReasonCode.PAUSED)
    if task.cancel_requested:
        reasons.append(Reason(code=ReasonCode.CANCEL_REQUESTED, text="its cancellation is requested"))
    becomes = _once_taken_over(task)
    waits = {one.code for one in blocking}
    if ReasonCode.PAUSED in waits:
        takes = "a worker takes it over" if workforce.taking else "that takes it over"
        return reasons, Next(code=NextCode.RESUME, text=f"{once_resumed(workforce)}, {takes}{becomes}")
    if not workforce.taking:
        text = f"once a worker serves queue {task.queue}, it takes it over{becomes}"
        return reasons, Next(code=NextCode.START_WORKER, text=text)
    within = workforce.takes_over_within(_patience_spent(idle, workforce))
    if within is None:
        return reasons, Next(code=NextCode.TAKE_OVER, text=f"when a slot comes free, a worker takes it over{becomes}")
    return reasons, Next(
        code=NextCode.TAKE_OVER, text=f"a worker takes it over in about {span(within)} at most{becomes}"
    )


def _patience_spent(idle: timedelta | None, workforce: Workforce) -> timedelta:
    longest = max((one.visibility_timeout for one in workforce.taking), default=timedelta())
    return longest if idle is None else idle


def _once_taken_over(task: Task) -> str:
    if task.cancel_requested:
        return ", and ends it as canceled"
    if task.status is not TaskStatus.RUNNING:
        return ", and starts it"
    if task.attempt >= task.max_attempts:
        return ", and gives it up as WorkerLost, since that was its last attempt"
    return f", and runs it as attempt {task.attempt + 1} of {task.max_attempts}"


def _lease_left(holding: Holding, workforce: Workforce) -> timedelta | None:
    visibility = workforce.visibility
    return None if visibility is None else visibility - holding.idle


def _lease_figures(holding: Holding, workforce: Workforce) -> dict[str, Figure]:
    left = _lease_left(holding, workforce)
    return {} if left is None else {"lease_left_s": tenths(left)}


def _lease_text(holding: Holding, workforce: Workforce) -> str:
    left = _lease_left(holding, workforce)
    return "" if left is None else f"; its lease ends in about {span(left)} unless it is extended"


def _shown(worker: WorkerId | str) -> str:
    # a stranger may read a stream under any name
    return clean(worker, limit=64)
