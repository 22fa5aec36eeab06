"""Where a task stands, in memory."""

from datetime import timedelta
from itertools import islice, takewhile

from msgspec.structs import replace

from dtq.adapters.memory.state import State, bare
from dtq.adapters.memory.streams import BANDS
from dtq.domain.standing import Holding, Standing
from dtq.domain.status import Place
from dtq.domain.task import Task, TaskId, place_of

_WITH_ENTRY = frozenset({Place.READY, Place.HELD})


class MemoryLocator:
    """A look at one task in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def locate(self, task_id: TaskId, *, count_up_to: int) -> Standing | None:
        state = self._state
        task = state.task(task_id)
        if task is None:
            return None
        if task_id in state.faults.garbled:
            return Standing(task=None, unreadable="the record is garbled")
        if place_of(task) in _WITH_ENTRY:
            return self._among_others(task, count_up_to=count_up_to)
        slot = state.schedule.get(task_id)
        return Standing(
            task=bare(task),
            paused=task.queue in state.paused,
            is_home=state.holds(task),
            on_loan=slot is not None and slot.claimed_at is not None,
            due=slot.due if slot is not None and slot.claimed_at is None else None,
            claimed_at=None if slot is None else slot.claimed_at,
        )

    def _among_others(self, task: Task, *, count_up_to: int) -> Standing:
        state, queue = self._state, task.queue
        bands = [priority for priority in BANDS if priority >= task.priority]
        spoiled = tuple(priority for priority in bands if (queue, priority) in state.faults.spoiled)
        found = Standing(task=bare(task), paused=queue in state.paused, spoiled=spoiled)
        if task.priority in spoiled:
            return found
        own = state.stream(queue, task.priority)
        holding = None if task.entry_id is None else own.held.get(task.entry_id)
        if holding is not None:
            idle = timedelta(seconds=state.clock.monotonic() - holding.idle_since)
            return replace(found, holding=Holding(owner=holding.owner, idle=idle))
        if task.entry_id not in own.fresh:
            return replace(found, is_home=False)
        older = sum(1 for _ in islice(takewhile(task.entry_id.__ne__, own.fresh), count_up_to + 1))
        higher = [state.stream(queue, priority) for priority in bands if priority not in {*spoiled, task.priority}]
        return replace(
            found,
            above=sum(len(stream.fresh) for stream in higher),
            before=min(older, count_up_to),
            before_is_whole=older <= count_up_to,
        )
