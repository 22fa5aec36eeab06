"""Many submissions in one call: each is on its way as soon as it is admitted, and leaves with its caller."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from dtq.adapters.memory.clock import settle
from dtq.application.creating import Creating, Submitted
from dtq.application.deadlines import Deadlines
from dtq.application.observers import Observers
from dtq.application.pace import PIECE_BYTES, TURNS
from dtq.domain.admission import AdmissionRules, BrokerLimits
from dtq.domain.errors import BrokerUnavailable, DtqError, InvalidTask
from dtq.domain.status import TaskStatus
from dtq.ports.answers import Admission
from dtq.ports.broker import Broker
from tests.application.link import Loss, over
from tests.application.world import World
from tests.factories import QUEUE

LARGE = {"task_type": "note", "payload": json.dumps({"text": "x" * PIECE_BYTES})}
"""After each of these the event loop goes round."""


async def depth(world: World) -> int:
    return (await world.queues.stats(QUEUE)).depth


async def test_what_is_admitted_is_sent_while_others_are_looked_into(world: World) -> None:
    world.link.stall("create")
    submitting = asyncio.ensure_future(world.tasks.submit_many([LARGE] * 10))

    await settle(turns=2 * TURNS)

    assert 1 == world.link.calls["create"]
    world.link.go_on()
    answers = await submitting
    entries = [answer.task.entry_id for answer in answers if isinstance(answer, Submitted) and answer.task is not None]
    assert 10 == len(entries) == await depth(world)
    assert sorted(entries, key=str) == entries


class Making:
    """A broker that tells of how many submissions each request is, as soon as it is made."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.made: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def create(self, admissions: Sequence[Admission], *, limits: BrokerLimits) -> Any:
        self.made.append(len(admissions))
        return self._broker.create(admissions, limits=limits)


async def test_the_next_ones_are_made_while_the_first_are_under_way_and_so_are_the_last(world: World) -> None:
    broker = Making(over(world.link, world.backend).broker)
    creating = Creating(
        broker,
        clock=world.clock,
        deadlines=Deadlines(world.clock),
        ids=world.ids,
        observer=Observers([world.notes]),
        limits=BrokerLimits(),
    )
    small = {"task_type": "note", "payload": json.dumps({"text": "x" * 200})}
    world.link.stall("create")
    submitting = asyncio.ensure_future(creating.all([small] * 45, read=dict, rules=AdmissionRules(task_types={"note"})))

    await settle(turns=4 * TURNS)

    assert [35, 10] == broker.made
    assert 1 == world.link.calls["create"]
    world.link.go_on()
    assert all(isinstance(answer, Submitted) for answer in await submitting)
    assert [35, 10] == broker.made
    assert 45 == await depth(world)


async def test_who_leaves_while_others_are_looked_into_takes_along_what_was_not_sent(world: World) -> None:
    world.link.stall("create")
    submitting = asyncio.ensure_future(world.tasks.submit_many([LARGE] * 10))
    await settle(turns=4 * TURNS)

    submitting.cancel()
    await settle()
    world.link.go_on()
    await world.tasks.submit(LARGE)

    assert submitting.cancelled()
    assert 2 == world.link.calls["create"]
    assert 2 == await depth(world)


@pytest.mark.parametrize(
    ("losses", "left"), [([Loss.BEFORE], 10), ([Loss.AFTER], 10), ([Loss.BEFORE] * 99, 0)], ids=str
)
async def test_what_fails_while_others_are_looked_into_is_tried_again(
    world: World, losses: list[Loss], left: int
) -> None:
    for loss in losses:
        world.link.lose("create", loss)
    submitting = asyncio.ensure_future(world.tasks.submit_many([LARGE] * 10))

    await world.advance(4.1)

    answers = await submitting
    assert left == await depth(world) == len([one for one in answers if isinstance(one, Submitted)])
    assert all(isinstance(one, (Submitted, BrokerUnavailable)) for one in answers)


async def test_what_cannot_be_read_is_the_answer_to_itself_and_told(world: World) -> None:
    fault = InvalidTask(())

    def read(number: int) -> dict[str, str]:
        if number == 1:
            raise fault
        return LARGE

    answers = await world.tasks.submit_each(range(3), read=read)

    assert [False, True, False] == [isinstance(answer, DtqError) for answer in answers]
    assert fault is answers[1]
    assert [{"queue": None, "reason": "invalid_task"}] == world.notes.of("submission_rejected")


async def test_one_of_many_that_stops_half_way_is_repeated(world: World) -> None:
    world.state.faults.writes_left = 1

    answers = await world.tasks.submit_many([LARGE] * 2)

    made = [answer.task_id for answer in answers if isinstance(answer, Submitted)]
    assert [TaskStatus.QUEUED] * 2 == [await world.status(task_id) for task_id in made]
