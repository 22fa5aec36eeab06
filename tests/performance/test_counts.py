from collections.abc import Iterator

import pytest

from tests.performance.ceilings import CEILINGS, above
from tests.performance.counted import least
from tests.servers import RedisServer, start_own


@pytest.fixture(scope="module")
def quiet_server() -> Iterator[RedisServer]:
    """A server that counts nobody else's commands."""
    with start_own() as server:
        yield server


@pytest.mark.parametrize("what", CEILINGS)
def test_nothing_takes_more_than_its_ceiling(what: str, quiet_server: RedisServer) -> None:
    counts = least(what, server=quiet_server, enough=lambda found: not above({what: found}))

    assert set(CEILINGS[what]) == set(counts)
    assert [] == above({what: counts})


@pytest.mark.parametrize("what", CEILINGS)
def test_a_count_above_its_ceiling_is_told(what: str) -> None:
    dearer = {name: ceiling * 1.01 for name, ceiling in CEILINGS[what].items()}

    assert len(CEILINGS[what]) == len(above({what: dearer}))
    assert [] == above({what: CEILINGS[what]})
