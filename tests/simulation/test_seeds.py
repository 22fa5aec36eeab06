"""Many runs of the whole system, each with its own chance, none of which may break a promise."""

import pytest

from tests.simulation.campaign import in_processes
from tests.simulation.plan import Mode

HOURS = 100_000


@pytest.mark.timeout(HOURS)
@pytest.mark.parametrize(("mode", "share"), [("within", 1), ("beyond", 10)])
def test_no_seed_fails(mode: Mode, share: int, pytestconfig: pytest.Config) -> None:
    count, first = pytestconfig.getoption("--seeds", 1000), pytestconfig.getoption("--from-seed", 0)

    report = in_processes(first=first, count=max(1, count // share), mode=mode)

    assert not report.failed, "\n\n".join(map(str, report.failed))
