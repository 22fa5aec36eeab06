"""What the tests' line to Redis does to what passes."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as SilentError
from redis.retry import Retry

from tests.servers import RedisServer, start_own
from tests.servers.proxy import Proxy, Then
from tests.servers.resp import Messages

WITHIN_S = 10.0
KEY = "dtq-proxy:key"
OTHER = "dtq-proxy:other"


@pytest.fixture
def line(redis_server: RedisServer) -> Iterator[Proxy]:
    with Proxy(redis_server.url) as line:
        yield line


@pytest.fixture
def direct(redis_server: RedisServer) -> Iterator[Any]:
    with client_of(redis_server.url) as direct:
        direct.delete(KEY, OTHER)
        yield direct
        direct.delete(KEY, OTHER)


def client_of(url: str, *, timeout: float = WITHIN_S) -> Any:
    """A client that never asks twice."""
    return Redis.from_url(url, decode_responses=True, socket_timeout=timeout, retry=Retry(NoBackoff(), 0))


def refused(call: Any, *arguments: Any) -> bool:
    try:
        call(*arguments)
    except RedisError:
        return True
    return False


def test_everything_passes_large_and_many_at_once(line: Proxy) -> None:
    text = "long" * 100_000
    with client_of(line.url) as client:
        client.delete(KEY)
        pipeline = client.pipeline(transaction=True)
        pipeline.set(KEY, text).get(KEY).hgetall(OTHER).delete(KEY)
        assert [True, text, {}, 1] == pipeline.execute()


def test_a_request_that_is_stopped_is_carried_out_only_once_the_line_is_healed(line: Proxy, direct: Any) -> None:
    trap = line.stop_before(b"stopped")
    with client_of(line.url) as client:
        asking = threading.Thread(target=client.set, args=(KEY, "stopped"))
        asking.start()
        trap.wait(WITHIN_S)
        assert None is direct.get(KEY)
        line.heal()
        asking.join(WITHIN_S)
    assert "stopped" == direct.get(KEY)
    assert trap.message.endswith(b"stopped\r\n")
    assert b"+OK\r\n" == trap.wait_for_reply(WITHIN_S)


@pytest.mark.usefixtures("direct")
def test_what_was_held_of_a_connection_that_is_cut_is_never_carried_out(line: Proxy) -> None:
    trap = line.stop_before(b"stopped")
    with client_of(line.url) as client:
        failed: list[bool] = []
        asking = threading.Thread(target=lambda: failed.append(refused(client.set, KEY, "stopped")))
        asking.start()
        trap.wait(WITHIN_S)
        line.cut()
        line.heal()
        asking.join(WITHIN_S)
        assert [True] == failed
        assert None is client.get(KEY)


def test_a_line_stopped_after_a_request_has_it_carried_out_and_says_nothing(line: Proxy, direct: Any) -> None:
    trap = line.stop_after(b"second", skip=1)
    with client_of(line.url, timeout=0.3) as client, client_of(line.url, timeout=0.3) as other:
        assert other.ping()
        client.set(OTHER, "second")
        with pytest.raises(SilentError):
            client.set(KEY, "second")
        trap.wait(WITHIN_S)
        assert "second" == direct.get(KEY)
        with pytest.raises(SilentError):
            other.ping()


def test_lost_replies_are_of_requests_that_were_carried_out(line: Proxy, direct: Any) -> None:
    trap = line.drop_replies(2, word=b"INCRBY")
    with client_of(line.url) as client:
        for _ in range(2):
            with pytest.raises(NoConnectionError):
                client.incrby(KEY, 1)
        assert trap.sprung
        assert 3 == client.incrby(KEY, 1)
    assert "3" == direct.get(KEY)


def test_lost_requests_are_not_carried_out(line: Proxy, direct: Any) -> None:
    trap = line.drop_requests(word=b"INCRBY")
    with client_of(line.url) as client:
        assert refused(client.incrby, KEY, 1)
        assert trap.sprung
        assert 1 == client.incrby(KEY, 1)
    assert "1" == direct.get(KEY)


def test_a_stalled_line_still_tells_what_it_stalled_at(line: Proxy, direct: Any) -> None:
    direct.set(KEY, "the word")
    trap = line.trap(b"the word", in_reply=True, then=Then.STALL)
    with client_of(line.url, timeout=0.3) as client:
        assert "the word" == client.get(KEY)
        assert trap.sprung
        with pytest.raises(SilentError):
            client.get(KEY)


@pytest.mark.usefixtures("direct")
def test_a_watched_word_is_noticed_and_passes(line: Proxy) -> None:
    asked, answered = line.watch(b"a word"), line.watch(b"a word", in_reply=True)
    with client_of(line.url) as client:
        client.set(KEY, "a word")
        asked.wait(WITHIN_S)
        assert not answered.sprung
        client.get(KEY)
    answered.wait(WITHIN_S)


def test_a_held_line_takes_connections_and_is_silent(line: Proxy) -> None:
    line.hold()
    with client_of(line.url, timeout=0.3) as client:
        with pytest.raises(SilentError):
            client.ping()
        line.heal()
        assert client.ping()


def test_a_refusing_line_is_like_a_server_that_is_down(line: Proxy) -> None:
    with client_of(line.url) as client:
        assert client.ping()
        line.refuse()
        assert refused(client.ping)
        assert refused(client.ping)
        line.heal()
        assert client.ping()


def test_a_delayed_line_takes_its_time_both_ways(line: Proxy) -> None:
    with client_of(line.url, timeout=0.3) as client:
        assert client.ping()
        line.delay(0.2)
        with pytest.raises(SilentError):
            client.ping()
        line.delay(0.01)
        assert client.ping()


def test_a_subscription_is_passed_on_too(line: Proxy, direct: Any) -> None:
    told = line.watch(b"news", in_reply=True)
    with client_of(line.url) as client, client.pubsub() as listener:
        listener.subscribe(KEY)
        assert "subscribe" == listener.get_message(timeout=WITHIN_S)["type"]
        direct.publish(KEY, "news")
        assert "news" == listener.get_message(timeout=WITHIN_S)["data"]
    told.wait(WITHIN_S)


def test_a_line_may_be_led_to_another_server(line: Proxy, direct: Any) -> None:
    direct.set(KEY, "the first")
    with start_own() as server, client_of(line.url) as client:
        assert "the first" == client.get(KEY)
        line.point_to(server.url)
        assert None is client.get(KEY)


def test_a_trap_that_nothing_can_spring_is_refused(line: Proxy) -> None:
    with pytest.raises(ValueError, match="STOP is set for requests only"):
        line.trap(b"word", in_reply=True, then=Then.STOP)
    with pytest.raises(ValueError, match="STALL is set for replies only"):
        line.trap(b"word", then=Then.STALL)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_are_whole_whatever_pieces_they_arrive_in(size: int) -> None:
    whole = [
        b"*2\r\n$3\r\nGET\r\n$4\r\nab\r\n\r\n",
        b"+OK\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*2\r\n*1\r\n:5\r\n%1\r\n+a\r\n_\r\n",
        b"|1\r\n+a\r\n:1\r\n$0\r\n\r\n",
        b">3\r\n+message\r\n$1\r\nc\r\n,1.5\r\n",
        b"-ERR no\r\n",
    ]
    stream, messages = b"".join(whole), Messages()
    pieces = (stream[start : start + size] for start in range(0, len(stream), size))
    assert whole == [message for piece in pieces for message in messages.feed(piece)]
