"""One client's end of the fan-out: what it is handed at once, and what is kept for it once it was let go."""

from datetime import timedelta

from dtq.application.fan_out_buffer import Block, Item
from dtq.application.fan_out_filter import EVERYTHING
from dtq.application.fan_out_tap import BATCH, Ending, Message, Tap
from tests.application.stage import TickingClock

SECOND = timedelta(seconds=1)


def word(_: Message) -> str:
    return "control"


def a_tap(*, buffer: int = 1_000) -> Tap[str]:
    return Tap(wanted=EVERYTHING, encode=word, clock=TickingClock(), buffer=buffer)


def block(number: int) -> Block[str]:
    return Block([Item(sequence, str(sequence), is_critical=False) for sequence in range(number)])


async def test_a_client_is_handed_a_bounded_number_of_messages_at_once() -> None:
    tap = a_tap()
    tap.put(block(2 * BATCH + 1))

    for expected in (BATCH, BATCH, 1):
        assert expected == len(await tap.take(at_most=SECOND))


async def test_nothing_is_kept_for_a_client_that_was_let_go() -> None:
    tap = a_tap()
    tap.end(Ending.GONE)

    tap.put(block(3))

    assert 0 == len(vars(tap)["_buffer"])
