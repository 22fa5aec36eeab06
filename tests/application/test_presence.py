"""What a worker looks at before it begins."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.application.handover import Condition, Handover
from dtq.application.presence import Presence, WorkerIdInUse
from dtq.application.settings import WorkerSettings
from dtq.domain.errors import UnsuitableBroker
from dtq.ports.environment import Server, ServerFacts
from tests.application.world import World
from tests.factories import WORKER, a_heartbeat


class Inspected:
    """A server that says what a test lets it say."""

    def __init__(self, facts: ServerFacts, *, refusal: UnsuitableBroker | None = None) -> None:
        self.facts = facts
        self.refusal = refusal

    async def inspect(self) -> ServerFacts:
        return self.facts

    async def prepare(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    async def close(self) -> None:
        return None


FACTS = ServerFacts(description="a server", uptime=timedelta(days=1))


def presence_of(world: World, server: Server) -> Presence:
    backend = replace(world.backend, server=server)
    settings = WorkerSettings(worker_id=WORKER, hostname="host")
    handover = Handover(look=Condition, on_reports=lambda _: None, on_trouble=lambda *_: None, on_replaced=lambda: None)
    return Presence(backend, settings=settings, handover=handover, ids=world.ids, observer=world.notes)


async def test_a_worker_warns_of_a_server_s_problems_and_runs(world: World) -> None:
    facts = replace(FACTS, problems=("maxmemory-policy is allkeys-lru",), warnings=("no persistence",))

    await presence_of(world, Inspected(facts)).enter(())

    warned = [{"warning": "maxmemory-policy is allkeys-lru"}, {"warning": "no persistence"}]
    assert warned == world.notes.of("server_warning")
    assert [WORKER] == list(await world.backend.workers.known())


async def test_a_server_that_forbids_something_is_not_used(world: World) -> None:
    server = Inspected(FACTS, refusal=UnsuitableBroker("PUBLISH is forbidden"))

    with pytest.raises(UnsuitableBroker, match="PUBLISH"):
        await presence_of(world, server).enter(())

    assert [] == list(await world.backend.workers.known())


async def test_warnings_are_passed_on(world: World) -> None:
    await presence_of(world, Inspected(replace(FACTS, warnings=("no persistence",)))).enter(())

    assert [{"warning": "no persistence"}] == world.notes.of("server_warning")


async def test_a_worker_whose_server_lacks_something_does_not_start(world: World) -> None:
    world.backend = replace(world.backend, server=Inspected(FACTS, refusal=UnsuitableBroker("too old")))

    staff = await world.hire()

    assert isinstance(staff.life.exception(), UnsuitableBroker)


async def test_peers_of_the_same_queue_that_judge_by_another_timeout_are_named(world: World) -> None:
    peer = await world.hire(visibility_timeout=timedelta(seconds=60))
    await world.hire(visibility_timeout=timedelta(seconds=60), queue="other")

    staff = await world.hire(visibility_timeout=timedelta(seconds=30))

    assert [{"worker_id": peer.settings.worker_id, "theirs": 60.0, "ours": 30.0}] == (
        staff.notes.of("visibility_timeouts_differ")
    )


@pytest.mark.parametrize(
    ("seconds", "warnings"),
    [
        (0.9, []),
        (-0.9, []),
        (90, ["the broker's clock is 90.0 s ahead of this host's"]),
        (-3600, ["the broker's clock is 3600.0 s behind this host's"]),
    ],
)
async def test_clocks_that_differ_are_told_of_once(world: World, seconds: float, warnings: list[str]) -> None:
    facts = replace(FACTS, host_offset=timedelta(seconds=seconds))

    await presence_of(world, Inspected(facts)).enter(())

    assert warnings == [note["warning"] for note in world.notes.of("server_warning")]


async def test_of_two_that_enter_under_one_id_in_one_moment_one_does(world: World) -> None:
    first, second = (presence_of(world, Inspected(FACTS)) for _ in range(2))
    entered, _ = await first.enter(())

    with pytest.raises(WorkerIdInUse):
        await second.enter(())

    assert entered == await world.backend.workers.get(WORKER)


async def test_a_worker_whose_id_lives_does_not_enter_and_leaves_no_trace(world: World) -> None:
    alive = a_heartbeat(worker_id=WORKER)
    assert await world.backend.workers.announce(alive, expires_in=timedelta(minutes=1))

    with pytest.raises(WorkerIdInUse):
        await presence_of(world, Inspected(FACTS)).enter(())

    assert [] == world.notes.events
    assert alive == await world.backend.workers.get(WORKER)


async def test_while_its_beat_lives_a_worker_gives_no_other_sign_of_life(world: World) -> None:
    staff = await world.hire()
    await world.advance(1)
    before = staff.link.calls["announce"]

    await world.advance(60)

    # every five seconds
    assert 12 == staff.link.calls["announce"] - before
