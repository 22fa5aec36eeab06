"""The server's clock as its replies tell it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from dtq.adapters.memory.clock import ManualClock
from dtq.adapters.redis.client import Rejected, Request
from dtq.adapters.redis.clock import RedisClock
from dtq.adapters.redis.scripts import FETCH, Scripts

SERVER = datetime(2030, 1, 1, tzinfo=UTC)


def _told(clock: RedisClock, server: datetime, *, after: float = 0.001) -> None:
    """Let a reply tell the server's time; its request was sent *after* seconds ago."""
    received = clock.monotonic()
    clock.learn(server.timestamp(), sent=received - after, received=received)


async def test_before_the_first_reply_it_shows_the_hosts_time() -> None:
    host = ManualClock()

    assert host.now() == RedisClock(host).now()


async def test_it_shows_the_servers_time_and_goes_on_from_there() -> None:
    host = ManualClock()
    clock = RedisClock(host)
    _told(clock, SERVER)

    await host.advance(timedelta(seconds=90))

    assert SERVER + timedelta(seconds=90) == clock.now()


async def test_a_step_of_the_servers_clock_is_followed_at_once() -> None:
    clock = RedisClock(ManualClock())
    _told(clock, SERVER)

    for moment in (SERVER + timedelta(hours=1), SERVER - timedelta(hours=1)):
        _told(clock, moment)

        assert abs(clock.now() - moment) <= timedelta(milliseconds=1)


async def test_a_reply_that_lay_unread_moves_nothing() -> None:
    host = ManualClock()
    clock = RedisClock(host)
    _told(clock, SERVER)
    await host.advance(timedelta(seconds=10))

    _told(clock, SERVER + timedelta(seconds=1), after=10)

    assert SERVER + timedelta(seconds=10) == clock.now()


async def test_it_is_never_ahead_of_the_server_and_does_not_go_back() -> None:
    host = ManualClock()
    clock = RedisClock(host)
    shown = []
    for passed, took in ((0, 0.9), (1, 0.5), (2, 0.001), (3, 0.4)):
        await host.advance(timedelta(seconds=passed) - (host.now() - ManualClock().now()))
        server = SERVER + timedelta(seconds=passed)
        _told(clock, server - timedelta(seconds=took / 2), after=took)
        shown.append(clock.now())
        assert clock.now() <= server

    assert sorted(shown) == shown


class Forgetful:
    """A server that has forgotten a script; half an hour passes until it has learnt it anew."""

    def __init__(self, host: ManualClock) -> None:
        self._host = host
        self._is_new = True

    async def call(self, name: str, *_: object) -> None:
        assert name == "SCRIPT"
        await self._host.advance(timedelta(minutes=30))
        self._is_new = False

    async def send(self, _: Request) -> object:
        if self._is_new:
            raise Rejected("NOSCRIPT", "no matching script")
        return [int(SERVER.timestamp()), 0, "reply"]


async def test_the_time_that_it_takes_to_load_a_script_tells_nothing_of_the_servers() -> None:
    host = ManualClock()
    clock = RedisClock(host)
    _told(clock, SERVER - timedelta(minutes=20))
    forgetful: Any = Forgetful(host)

    await Scripts(forgetful, clock=clock).run(FETCH, keys=(), arguments=())

    assert clock.now() == SERVER
