"""Judged item 6: a worker that was stopped past its lease changes nothing of what others have done meanwhile.

Two tasks each, one of an async handler and one of a sync handler, which nobody can stop: it always reports, too late.
"""

import pytest

from dtq.domain.status import TaskStatus
from tests.judged.footprint import Events, footprint, listening
from tests.judged.sizes import HEARTBEAT_S, VISIBILITY_S
from tests.judged.system import System, Worker, a_gated_task
from tests.judged.waiting import holds_for, wait_until

PICKED_UP_WITHIN_S = 2 * VISIBILITY_S + 10
BEATS_S = 3 * min(HEARTBEAT_S, 1)

INTENTIONS = pytest.mark.parametrize("fails", [False, True], ids=["it would succeed", "it would reschedule"])

pytestmark = pytest.mark.timeout(300)


class Scene:
    """A worker that stands still over two tasks, and another that has taken them over."""

    def __init__(self, system: System, *, fails: bool) -> None:
        self.system = system
        self.stopped = system.worker(concurrency=2)
        failing = [1] if fails else []
        self.tasks = system.create(
            a_gated_task("scene", fails=failing), a_gated_task("scene", task_type="gated_sync", fails=failing)
        )
        for task_id in self.tasks:
            system.started(task_id)
        self.stopped.freeze()
        self.other = system.worker(concurrency=2)
        for task_id in self.tasks:
            system.started(task_id, attempt=2, within=PICKED_UP_WITHIN_S)

    def finish(self) -> None:
        """Let the other worker finish both."""
        self.system.open_gate("scene", attempt=2)
        for task_id in self.tasks:
            assert TaskStatus.SUCCEEDED is self.system.ended(task_id).status

    def wake(self, events: Events, *, free_slots: int) -> None:
        """Continue the stopped worker, whose handlers may return at once; see that this changes nothing."""
        before = footprint(self.system), [events.of(task_id) for task_id in self.tasks]
        self.system.open_gate("scene", attempt=1)
        self.stopped.thaw()

        def unchanged() -> bool:
            return before == (footprint(self.system), [events.of(task_id) for task_id in self.tasks])

        (late,) = self.tasks[1:]
        wait_until(lambda: self.system.journal.of(late, "end"), within=10, what="the sync handler returns, too late")
        holds_for(unchanged, seconds=BEATS_S, what=f"what Redis holds: {before}")
        self._see_it_work_on(free_slots)
        owned = [self.system.journal.starts(task_id) for task_id in self.tasks]
        assert [[1, 2], [1, 2]] == owned

    def _see_it_work_on(self, free_slots: int) -> None:
        """The stopped worker is past its late results once it takes new work: as much as there are free slots."""
        probes = self.system.create(*[a_gated_task("probe")] * free_slots)
        for task_id in probes:
            self.system.started(task_id)
        held_by = {self.system.journal.of(task_id)[0].worker_id for task_id in probes}
        assert self.stopped.worker_id in held_by
        self.system.open_gate("probe")
        for task_id in probes:
            assert TaskStatus.SUCCEEDED is self.system.ended(task_id).status


def held_by(worker: Worker, scene: Scene) -> bool:
    """Whether the worker is who runs both tasks, by their records."""
    tasks = [scene.system.task(task_id) for task_id in scene.tasks]
    return all(task.status is TaskStatus.RUNNING and task.worker_id == worker.worker_id for task in tasks)


@INTENTIONS
def test_a_stopped_worker_changes_nothing_of_what_another_has_finished(system: System, *, fails: bool) -> None:
    with listening(system) as events:
        scene = Scene(system, fails=fails)
        scene.finish()

        scene.wake(events, free_slots=4)

        for task_id in scene.tasks:
            task = system.task(task_id)
            assert (TaskStatus.SUCCEEDED, 2) == (task.status, task.attempt)
            assert '{"attempt":2}' == system.run(system.backend.broker.result(task_id))
            expected = ["TASK_QUEUED 0", "TASK_STARTED 1", "TASK_STARTED 2", "TASK_SUCCEEDED 2"]
            assert expected == events.of(task_id)


@INTENTIONS
def test_a_stopped_worker_takes_nothing_back_from_one_that_still_runs_it(system: System, *, fails: bool) -> None:
    with listening(system) as events:
        scene = Scene(system, fails=fails)

        scene.wake(events, free_slots=2)

        assert held_by(scene.other, scene)
        scene.finish()
        assert [2, 2] == [system.task(task_id).attempt for task_id in scene.tasks]
