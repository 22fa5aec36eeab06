"""The services of compose.yaml, built from the Dockerfile and run on a Docker engine without its compose plugin."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import docker
import httpx
from docker.models.containers import Container
from docker.models.networks import Network

from tests.containers.files import PROJECT, Service, seconds, services
from tests.servers.container import image_at_hand
from tests.servers.docker_socket import require_listener
from tests.servers.process import LOOPBACK, free_port

BASE = "DTQ_TEST_PYTHON_IMAGE"
KEY = "of-the-operator"
PATIENCE_S = 60.0
LABEL = "dtq-test"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What runs, and how it is spoken to."""

    api: Container
    worker: Container
    http: httpx.Client

    def submit(self, task_type: str, payload: dict[str, Any]) -> str:
        """The id of a new task."""
        answer = self.http.post("/api/v1/tasks", json={"task_type": task_type, "payload": payload})
        answer.raise_for_status()
        task_id: str = answer.json()["task_id"]
        return task_id

    def task(self, task_id: str, *, wait_s: int = 0) -> dict[str, Any]:
        """A task as the API shows it, once it is terminal or after this time."""
        found: dict[str, Any] = self.http.get(f"/api/v1/tasks/{task_id}", params={"wait": wait_s}).json()
        return found


@contextlib.contextmanager
def running_system() -> Iterator[System]:
    """Build both images and run all services as the compose file says; remove everything but the images at the end."""
    require_listener()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(contextlib.closing(docker.from_env(timeout=600)))
        for target in ("api", "worker"):
            _build(client, target=target)
        port = free_port()
        # a name of its own for each system: two of them may run at once
        network = client.networks.create(f"{LABEL}-{port}", labels={LABEL: "containers"})
        stack.callback(network.remove)
        found = services(DTQ_API_KEY=KEY, REDIS_IMAGE=image_at_hand(), API_PORT=str(port))
        redis = _start(client, "redis", found["redis"], network=network, stack=stack)
        until(lambda: redis.exec_run(["redis-cli", "ping"]).output.strip() == b"PONG", what="Redis answers")
        api = _start(client, "api", found["api"], network=network, stack=stack)
        worker = _start(client, "worker", found["worker"], network=network, stack=stack)
        for container in (api, worker):
            until(lambda: health(container) == "healthy", what=f"{container.name} is healthy")  # noqa: B023 - at once
        http = stack.enter_context(httpx.Client(base_url=f"http://{LOOPBACK}:{port}", timeout=PATIENCE_S))
        yield System(api=api, worker=worker, http=http)


def until(condition: Callable[[], bool], *, what: str) -> None:
    """Return once the condition holds; fail with *what* was waited for."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / 0.2)):
        if condition():
            return
        pause.wait(0.2)
    raise TimeoutError(f"not within {PATIENCE_S:g} s: {what}")


def health(container: Container) -> str:
    """What the engine has found by the image's own check."""
    container.reload()
    state = container.attrs["State"]
    if not state["Running"]:
        raise ChildProcessError(container.logs().decode(errors="replace"))
    found: str = state["Health"]["Status"]
    return found


def end(container: Container, *, grace_s: int) -> int:
    """Send SIGTERM to process 1 and return its exit code."""
    container.kill("SIGTERM")
    return int(container.wait(timeout=grace_s)["StatusCode"])


def _build(client: docker.DockerClient, *, target: str) -> None:
    given = os.environ.get(BASE)  # noqa: TID251 - the machine's choice, as the server of other tests is
    arguments = {"BASE": given} if given else {}
    # pip needs the machine's way out, which a network of the engine's own may not have
    client.images.build(
        path=str(PROJECT), target=target, tag=f"{LABEL}-{target}", buildargs=arguments, network_mode="host", rm=True
    )


def _start(
    client: docker.DockerClient, name: str, service: Service, *, network: Network, stack: contextlib.ExitStack
) -> Container:
    container = client.containers.create(
        f"{LABEL}-{name}" if "build" in service else service["image"],
        service["command"],
        environment=service.get("environment", {}),
        user=service.get("user"),
        read_only=service["read_only"],
        cap_drop=service["cap_drop"],
        security_opt=service["security_opt"],
        tmpfs=dict.fromkeys(service["tmpfs"], ""),
        volumes=[volume.partition(":")[2] for volume in service.get("volumes", ())],
        ports=dict(_published(port) for port in service.get("ports", ())),
        labels={LABEL: "containers"},
    )
    stack.callback(container.remove, force=True, v=True)
    network.connect(container, aliases=[name])
    container.start()
    return container


def _published(port: str) -> tuple[str, tuple[str, str]]:
    host, outer, inner = port.split(":")
    if host != LOOPBACK:
        raise ValueError(f"{port} is open to more than this host")
    return f"{inner}/tcp", (host, outer)


def grace_of(name: str) -> int:
    """How long the compose file lets a service end."""
    return seconds(services()[name]["stop_grace_period"])
