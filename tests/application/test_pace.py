"""What is large is worked through in pieces, between which others have the loop."""

import asyncio
from collections.abc import Sequence

import pytest

from dtq.adapters.system import SystemClock
from dtq.application.admitting import admitted
from dtq.application.pace import PIECE_BYTES, TURNS, Pace
from dtq.domain.admission import AdmissionRules, TaskSpec
from dtq.domain.errors import DtqError, FieldProblem
from tests.application.stage import Notes


class Rounds:
    """How often the event loop has gone round."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_soon(self._round)

    def _round(self) -> None:
        self.count += 1
        self._next = self._loop.call_soon(self._round)

    def end(self) -> None:
        self._next.cancel()


@pytest.mark.parametrize(
    ("sizes", "pieces"),
    [
        ([], 0),
        ([PIECE_BYTES - 1], 0),
        ([PIECE_BYTES], 1),
        ([PIECE_BYTES - 1, 1], 1),
        ([PIECE_BYTES // 2] * 5, 2),
        ([PIECE_BYTES * 3] * 3, 3),
    ],
)
async def test_others_have_the_loop_after_each_piece(sizes: Sequence[int], pieces: int) -> None:
    pace, rounds = Pace(SystemClock()), Rounds()

    for size in sizes:
        await pace.done(size)

    assert TURNS * pieces == rounds.count
    rounds.end()


async def admitted_in(payload_bytes: int, *, count: int) -> tuple[list[int], Sequence[TaskSpec | DtqError]]:
    """In which round of the loop each of so many submissions is looked into, and what became of them."""
    rounds, looked = Rounds(), []

    def look(task_type: str, payload: str) -> FieldProblem | None:
        del task_type, payload
        looked.append(rounds.count)
        return FieldProblem("payload", "is the second") if len(looked) == 2 else None

    rules = AdmissionRules(task_types=["note"], payload_problem=look)
    fields = {"task_type": "note", "payload": f'{{"a":"{"x" * payload_bytes}"}}'}
    answers = await admitted(
        [fields] * count, read=dict, rules=rules, observer=Notes(), clock=SystemClock(), begin=lambda spec: spec
    )
    rounds.end()
    return looked, answers


async def test_large_submissions_are_admitted_in_rounds_of_their_own() -> None:
    looked, answers = await admitted_in(PIECE_BYTES, count=5)

    assert [0, TURNS, 2 * TURNS, 3 * TURNS, 4 * TURNS] == looked
    assert [False, True, False, False, False] == [isinstance(answer, DtqError) for answer in answers]


async def test_small_ones_travel_together_up_to_one_that_is_refused() -> None:
    looked, _ = await admitted_in(10, count=30)

    assert [0] * 2 + [TURNS] * 28 == looked
