"""The crash matrix of docs/delivery-guarantees.md and the one that is tested are the same."""

from pathlib import Path

import pytest

from tests.crash.cells import Fault, Point
from tests.crash.points import POINTS
from tests.tidy.tables import rows

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "delivery-guarantees.md").read_text()
TABLE = rows(TEXT, "## The crash matrix")
COLUMNS = (
    Fault.KILLED_BEFORE,
    Fault.KILLED_AFTER,
    Fault.REQUEST_LOST,
    Fault.REPLY_LOST,
    Fault.COMMANDS_DENIED,
)


def test_every_point_has_its_row_and_every_row_its_point() -> None:
    assert sorted(point.name for point in POINTS) == sorted(TABLE)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_each_cell_says_what_is_tested(point: Point) -> None:
    assert [str(point.outcomes[fault]) for fault in COLUMNS] == TABLE[point.name][: len(COLUMNS)]
    assert set(Fault) == set(point.outcomes)
    assert point.outcomes[Fault.COMMANDS_DENIED] == point.outcomes[Fault.KEYS_DENIED]
