"""One module for each group of figures."""

from typing import Final

from benchmarks.groups import (
    draining,
    enqueueing,
    falling_due,
    growing,
    http_enqueueing,
    idling,
    loading,
    sharing,
    storing,
)
from benchmarks.measuring import Group

ALL: Final[tuple[Group, ...]] = (
    enqueueing.GROUP,
    http_enqueueing.GROUP,
    draining.GROUP,
    idling.GROUP,
    loading.GROUP,
    storing.GROUP,
    falling_due.GROUP,
    growing.GROUP,
    sharing.GROUP,
)
