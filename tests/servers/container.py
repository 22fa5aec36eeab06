"""A server in a Docker container, by testcontainers."""

import contextlib
import os
from typing import Any

import docker
from docker.errors import DockerException, ImageNotFound
from requests.exceptions import RequestException
from testcontainers.community.redis import RedisContainer

from tests.servers.engine import Options
from tests.servers.kinds import MissingServerError
from tests.servers.process import free_port

REDIS_PORT = 6379
ANSWER_TIMEOUT_S = 3
DEFAULT_IMAGE = "redis:7.4-alpine"


def image_at_hand() -> str:
    """The image to run, once an engine has answered and has it."""
    image = os.environ.get("DTQ_TEST_REDIS_IMAGE", DEFAULT_IMAGE)
    try:
        with contextlib.closing(docker.from_env(timeout=ANSWER_TIMEOUT_S)) as client:
            _pull_if_absent(client, image)
    except (DockerException, RequestException) as error:
        raise MissingServerError("container", f"the Docker engine cannot give {image} ({error})") from error
    return image


def _pull_if_absent(client: docker.DockerClient, image: str) -> None:
    try:
        client.images.get(image)
    except ImageNotFound:
        client.images.pull(image)


class ContainerEngine:
    """Runs a server in a container whose published port stays the same from launch to launch."""

    def __init__(self, image: str, *, options: Options) -> None:
        self._port = options.port or free_port()
        self._launched = False
        self._container = RedisContainer(image)
        # Docker gives a new port at each start unless it is told which
        self._container.with_bind_ports(REDIS_PORT, self._port)
        self._container.with_command(["redis-server", "--protected-mode", "no", *options.command_line()])
        if options.data_dir is not None:
            self._container.with_volume_mapping(options.data_dir, "/data", "rw")

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    @property
    def host(self) -> str:
        return self._container.get_container_host_ip()

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        return int(self._inspect()["Pid"])

    def launch(self) -> None:
        if self._launched:
            self._wrapped().start()
            return
        self._container.start()
        self._launched = True

    def alive(self) -> bool:
        return bool(self._inspect()["Running"])

    def log(self) -> str:
        return b"".join(self._container.get_logs()).decode(errors="replace")

    def kill(self) -> None:
        self._wrapped().kill()
        self._wrapped().wait()

    def stop(self) -> None:
        if self._launched and self.alive():
            self.resume()
            self._wrapped().stop()

    def pause(self) -> None:
        self._wrapped().pause()

    def resume(self) -> None:
        if self._inspect()["Paused"]:
            self._wrapped().unpause()

    def remove(self) -> None:
        self._container.stop()

    def _inspect(self) -> dict[str, Any]:
        self._wrapped().reload()
        state: dict[str, Any] = self._wrapped().attrs["State"]
        return state

    def _wrapped(self) -> Any:
        return self._container.get_wrapped_container()
