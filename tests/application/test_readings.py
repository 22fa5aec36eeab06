import asyncio
from datetime import timedelta

from dtq.adapters.memory.clock import settle
from dtq.application.readings import FRESH, WITHIN, Readings
from dtq.domain.task import QueueName
from dtq.domain.workers import WorkerStatus
from dtq.ports.survey import QueueFigures
from tests.application.link import over
from tests.application.world import World
from tests.factories import WORKER, a_heartbeat

INTERVAL = timedelta(seconds=5)
MOMENT = timedelta(milliseconds=1)


def readings_of(world: World, *, max_queues: int = 10) -> Readings:
    return Readings(
        over(world.link, world.backend).surveyor,
        clock=world.clock,
        heartbeat_interval=INTERVAL,
        max_queues=max_queues,
        observers=[world.notes],
    )


async def test_a_reading_tells_of_queues_schedule_and_dead_letters(world: World) -> None:
    await world.submit()
    await world.submit(queue="mail", delay_seconds=60)

    reading = await readings_of(world).take()

    assert reading is not None
    default = QueueFigures(queue=QueueName("default"), depth=1, pending=0)
    mail = QueueFigures(queue=QueueName("mail"), depth=0, pending=0)
    assert [default, mail] == list(reading.survey.queues)
    assert (1, 0) == (reading.survey.scheduled, reading.survey.dead_letters)


async def test_a_reading_shows_no_more_queues_than_there_may_be(world: World) -> None:
    for name in ("a", "b", "c"):
        await world.backend.queues.register(QueueName(name))

    reading = await readings_of(world, max_queues=2).take()

    assert reading is not None
    assert ["a", "b"] == [one.queue for one in reading.survey.queues]


async def test_workers_count_while_they_show_signs_of_life(world: World) -> None:
    now = world.clock.now()
    for name, status, silent in (
        ("ready", WorkerStatus.READY, 0),
        ("draining", WorkerStatus.DRAINING, 15),
        ("stopped", WorkerStatus.STOPPED, 0),
        ("silent", WorkerStatus.READY, 16),
    ):
        heartbeat = a_heartbeat(
            worker_id=f"{WORKER}-{name}", status=status, last_heartbeat=now - timedelta(seconds=silent)
        )
        await world.backend.workers.announce(heartbeat, expires_in=timedelta(minutes=5))

    reading = await readings_of(world).take()

    assert reading is not None
    assert 2 == reading.workers_active


async def test_the_broker_is_asked_once_in_two_seconds_however_often_somebody_looks(world: World) -> None:
    readings = readings_of(world)

    first = await asyncio.gather(*[readings.take() for _ in range(5)])
    await world.clock.advance(FRESH - MOMENT)
    again = await readings.take()

    assert 1 == world.link.calls["survey"]
    assert all(one is again for one in first)
    await world.clock.advance(MOMENT)
    assert again is not await readings.take()
    assert 2 == world.link.calls["survey"]


async def test_an_outage_shows_nothing_and_is_asked_about_once_in_two_seconds(world: World) -> None:
    readings = readings_of(world)
    assert await readings.take() is not None
    world.link.is_down = True
    await world.clock.advance(FRESH)

    looks = [asyncio.ensure_future(readings.take()) for _ in range(3)]
    await world.clock.advance(WITHIN)

    assert [None] * 3 == [look.result() for look in looks]
    assert [{"error": "BrokerUnavailable"}] == world.notes.of("gauges_unread")
    world.link.is_down = False
    await world.clock.advance(FRESH)
    assert await readings.take() is not None


async def test_a_silent_broker_is_waited_for_two_seconds(world: World) -> None:
    world.link.stall("survey")
    look = asyncio.ensure_future(readings_of(world).take())
    await settle()

    await world.clock.advance(WITHIN - MOMENT)
    assert not look.done()
    await world.clock.advance(MOMENT)

    assert look.result() is None
    world.link.go_on()
    await settle()


async def test_a_look_that_is_given_up_keeps_nobody_else_waiting(world: World) -> None:
    readings = readings_of(world)
    world.link.stall("survey")
    given_up = asyncio.ensure_future(readings.take())
    await settle()
    given_up.cancel()
    world.link.go_on()

    assert await readings.take() is not None
