"""The crash matrix: at every step of a task's life a process is killed, a command denied, a message lost.

A cell is a point and a fault; what must come of it stands in points.py, and in docs/delivery-guarantees.md.
"""

import pytest

from tests.crash import wire
from tests.crash.cells import Fault, Point
from tests.crash.checker import see_outcome
from tests.crash.faults import caught, settle, strike
from tests.crash.ground import Ground
from tests.crash.points import POINTS

CELLS = [pytest.param(point, fault, id=f"{point.name}-{fault.value}") for point in POINTS for fault in Fault]


@pytest.mark.parametrize(("point", "fault"), CELLS)
def test_the_outcome_is_what_the_document_says(ground: Ground, point: Point, fault: Fault) -> None:
    outcome = point.outcomes[fault]

    strike(ground, point, fault)

    settle(ground, point, outcome)
    see_outcome(ground, outcome)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_each_command_of_a_step_is_one_that_the_matrix_denies(ground: Ground, point: Point) -> None:
    request = caught(ground, point)

    if request.commands:
        assert point.commands == request.commands
    else:
        assert point.commands <= wire.commands_of_script(request.script)
