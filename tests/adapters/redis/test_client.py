"""What a caller meets when the server is away, silent, forgetful or full."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from redis.exceptions import ResponseError

from dtq.adapters.memory.clock import settle
from dtq.adapters.redis import connect
from dtq.adapters.redis.client import MAX_CONNECTIONS, Client, Rejected, rejection, translated
from dtq.domain.errors import BrokerOutOfMemory, BrokerRefused, BrokerUnavailable, OutcomeUnknown, is_outage
from dtq.ports.backend import Backend, BackendOptions
from tests.contract.steps import LIMITS
from tests.factories import QUEUE, WORKER, an_admission, an_event
from tests.servers import RedisServer

SHORT = timedelta(seconds=1)


@pytest.fixture
async def client(own_redis_server: RedisServer) -> AsyncIterator[Client]:
    client = Client(own_redis_server.url, timeout=SHORT)
    yield client
    await client.close()


@pytest.fixture
async def backend(own_redis_server: RedisServer) -> AsyncIterator[Backend]:
    backend = connect(own_redis_server.url, options=BackendOptions(call_timeout=SHORT))
    yield backend
    await backend.server.close()


async def test_a_server_that_is_away_has_done_nothing(client: Client, own_redis_server: RedisServer) -> None:
    await client.call("PING")
    own_redis_server.stop()
    await settle()

    with pytest.raises(BrokerUnavailable) as caught:
        await client.call("INCR", "n")

    assert not isinstance(caught.value, OutcomeUnknown)
    own_redis_server.restart()
    assert 1 == await client.call("INCR", "n")


async def test_a_silent_server_is_given_up_in_time(client: Client, own_redis_server: RedisServer) -> None:
    await client.call("PING")
    own_redis_server.pause()

    async with asyncio.timeout(10 * SHORT.total_seconds()):
        with pytest.raises(OutcomeUnknown):
            await client.call("INCR", "n")

    own_redis_server.resume()
    assert "PONG" == await client.call("PING")


async def test_a_server_that_is_silent_from_the_start_is_given_up_in_time(own_redis_server: RedisServer) -> None:
    client = Client(own_redis_server.url, timeout=SHORT)
    own_redis_server.pause()

    with pytest.raises(BrokerUnavailable):
        await client.call("PING")

    own_redis_server.resume()


async def test_a_request_is_sent_once(client: Client, own_redis_server: RedisServer) -> None:
    await client.call("SET", "n", "0")
    own_redis_server.pause()
    with pytest.raises(OutcomeUnknown):
        await client.call("INCR", "n")
    own_redis_server.resume()

    assert "1" == await client.call("GET", "n")


async def test_a_call_that_was_given_up_leaves_its_reply_to_nobody(client: Client) -> None:
    await client.call("SET", "n", "7")
    blocked = asyncio.create_task(client.call("BLPOP", "nothing", 0, block=timedelta(seconds=9)))
    await client.call("PING")
    blocked.cancel()
    await asyncio.gather(blocked, return_exceptions=True)

    assert ["7"] * 9 == [await client.call("GET", "n") for _ in range(9)]


async def test_many_calls_share_the_connections(own_redis_server: RedisServer) -> None:
    client = Client(own_redis_server.url, timeout=timedelta(seconds=10))

    replies = await asyncio.gather(*[client.call("SADD", "s", number) for number in range(300)])

    assert [1] * 300 == replies
    connected = re.search(r"connected_clients:(\d+)", await client.call("INFO", "clients"))
    assert connected is not None
    assert int(connected[1]) <= MAX_CONNECTIONS
    await client.close()


async def test_an_error_keeps_its_code_and_repeats_no_argument(client: Client) -> None:
    with pytest.raises(Rejected) as caught:
        await client.call("NONSENSE", "my secret")

    assert "secret" not in str(caught.value)
    with pytest.raises(Rejected) as caught:
        await client.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    assert "NOGROUP" == caught.value.reply_code


async def test_the_errors_of_a_pipeline_are_the_replies_of_their_commands(client: Client) -> None:
    first, second, third = await client.pipeline([("SET", "n", "1"), ("LLEN", "n"), ("GET", "n")])

    assert ("OK", "1") == (first, third)
    assert isinstance(second, Rejected)


async def test_text_that_is_no_utf8_breaks_no_reply(client: Client) -> None:
    await client.call("SET", "n", b"a\xffb")

    assert "a\ufffdb" == await client.call("GET", "n")


async def test_a_password_is_in_no_error(own_redis_server: RedisServer) -> None:
    client = Client(own_redis_server.url.replace("//", "//user:hunter2@"), timeout=SHORT)

    with pytest.raises(BrokerUnavailable) as caught:
        await client.call("PING")

    assert "hunter2" not in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize("url", ["http://localhost", "redis://localhost?color=red", "redis://localhost?db=first"])
def test_a_url_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Client(url, timeout=SHORT)


async def test_what_dtq_relies_on_is_not_for_the_url_to_say(own_redis_server: RedisServer) -> None:
    client = Client(f"{own_redis_server.url}?protocol=3&decode_responses=no&socket_timeout=9", timeout=SHORT)
    await client.call("HSET", "h", "field", "1")

    assert ["field", "1"] == await client.call("HGETALL", "h")
    await client.close()


async def test_scripts_that_the_server_forgot_are_loaded_again(
    backend: Backend, client: Client, own_redis_server: RedisServer
) -> None:
    await backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)
    await client.call("SCRIPT", "FLUSH")
    await backend.broker.create([an_admission(now=backend.clock.now())], limits=LIMITS)
    own_redis_server.restart()
    await settle()

    (delivery,) = (await backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)).deliveries

    assert delivery.task is not None


@pytest.mark.parametrize(
    "command",
    [("PING",), ("MGET", *"abcdefghijk"), ("SET", "k", "v" * 20_000)],
    ids=["short", "of many arguments", "of a long argument"],
)
async def test_a_server_that_wants_a_password_by_now_is_an_outage_whatever_it_is_asked_for(
    client: Client, own_redis_server: RedisServer, command: tuple[str, ...]
) -> None:
    await client.call("CONFIG", "SET", "requirepass", "secret")
    newcomer = Client(own_redis_server.url, timeout=SHORT)

    with pytest.raises(BrokerUnavailable) as caught:
        await newcomer.call(*command)

    assert is_outage(caught.value)
    await newcomer.close()


async def test_a_full_memory_is_told_apart(backend: Backend, client: Client) -> None:
    await client.call("CONFIG", "SET", "maxmemory", "1")

    with pytest.raises(BrokerOutOfMemory):
        await backend.broker.create([an_admission(now=backend.clock.now())], limits=LIMITS)


async def test_a_subscription_ends_with_its_server(backend: Backend, own_redis_server: RedisServer) -> None:
    async with backend.events.subscribe() as events:
        own_redis_server.kill()

        with pytest.raises(BrokerUnavailable):
            await anext(events)

    own_redis_server.restart()
    async with backend.events.subscribe() as events:
        event = an_event()
        await backend.events.publish(event)
        assert event == await anext(events)


async def test_a_subscription_needs_a_server(backend: Backend, own_redis_server: RedisServer) -> None:
    own_redis_server.stop()

    with pytest.raises(BrokerUnavailable):
        async with backend.events.subscribe():
            pass


@pytest.mark.parametrize(
    "text",
    [
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "NOPERM this user has no permissions to run the 'scan' command",
        "ERR unknown command 'XAUTOCLAIM'",
        "NOGROUP No such key",
    ],
)
def test_what_a_server_that_is_well_does_not_accept_is_a_refusal(text: str) -> None:
    assert isinstance(translated(ResponseError(text)), BrokerRefused)


@pytest.mark.parametrize(
    "code",
    [
        *("LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "ASK", "NOREPLICAS"),
        *("MISCONF", "OOM", "BUSY", "UNBLOCKED", "NOAUTH", "WRONGPASS"),
    ],
)
def test_a_server_that_can_serve_nobody_is_an_outage(code: str) -> None:
    assert not isinstance(translated(ResponseError(f"{code} says the server")), BrokerRefused)


@pytest.mark.parametrize("what", ["multibulk", "bulk"])
def test_a_server_that_reads_no_long_request_without_a_password_is_an_outage(what: str) -> None:
    error = translated(ResponseError(f"Protocol error: unauthenticated {what} length", status_code="ERR"))

    assert is_outage(error)


def test_what_stops_a_step_half_way_is_judged_by_its_code() -> None:
    assert isinstance(rejection("WRONGTYPE", "stopped half-way"), BrokerRefused)
    assert not isinstance(rejection("READONLY", "stopped half-way"), BrokerRefused)
