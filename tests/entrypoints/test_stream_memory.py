from datetime import timedelta

from dtq.adapters.memory import ManualClock
from dtq.entrypoints.http.stream_memory import MANY, SETTLED, MemoryReturn


async def test_many_clients_that_go_are_followed_by_one_collection() -> None:
    clock = ManualClock()
    memory = MemoryReturn(clock)

    for _ in range(MANY - 1):
        memory.departed()
    await clock.advance(2 * SETTLED)
    assert 0 == memory.times

    for _ in range(2 * MANY):
        memory.departed()
    await clock.advance(SETTLED - timedelta(seconds=1))
    assert 0 == memory.times
    await clock.advance(timedelta(seconds=1))
    assert 1 == memory.times

    await clock.advance(10 * SETTLED)
    assert 1 == memory.times
