"""Whatever a plan may contain is done by somebody."""

from types import SimpleNamespace
from typing import Any

from tests.chaos.calamities import Calamities
from tests.chaos.lines import Lines
from tests.chaos.plan import BEYOND, KINDS
from tests.chaos.processes import Processes
from tests.chaos.scrape import counters_of
from tests.chaos.server import Server
from tests.simulation.history import History


def test_each_kind_of_fault_has_one_who_strikes() -> None:
    deployment: Any = SimpleNamespace(workers=[], apis=[])
    history: Any = History
    strikers = (
        Processes(deployment, history=history, now=lambda: 0.0),
        Server(deployment),
        Lines(deployment),
        Calamities(deployment),
    )

    kinds = [kind for striker in strikers for kind in striker.acts()]

    assert sorted([*KINDS, *BEYOND]) == sorted(kinds)


def test_only_what_may_not_fall_counts_as_a_counter() -> None:
    text = '# TYPE a counter\na_total{of="x y"} 3.0\ndepth{queue="a_total"} 2.0\nb_seconds_count 4.0\nworkers 1.0\n'

    assert {'a_total{of="x y"}': 3.0, "b_seconds_count": 4.0} == counters_of(text)
