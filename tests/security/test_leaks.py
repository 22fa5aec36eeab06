"""Check 14: dtq opens no connection but to its Redis, whatever a payload says, and no error tells how it was made.

Secrets in logs, metrics, probes and settings: tests/integration/test_metrics_and_secrets.py.
"""

import json
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judged.program import Program
from tests.security.site import ENTRY, WITH_KEY, Site
from tests.servers.process import LOOPBACK

INODE = re.compile(r"socket:\[(\d+)\]")
TRACES = ("Traceback", "  File ", "litestar", "/src/", ".py", "redis.exceptions", "msgspec", "0x7f")


@pytest.fixture(scope="module")
def trap() -> Iterator[socket.socket]:
    """Listens for whoever follows a link."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.setblocking(False)  # noqa: FBT003 - the name that sockets give it
        yield listener


def links_to(trap: socket.socket) -> list[str]:
    host, port = trap.getsockname()
    place = f"{host}:{port}"
    return [
        f"http://{place}/canary",
        f"https://{place}/canary",
        f"redis://{place}/0",
        f"ftp://{place}/canary",
        f"//{place}/canary",
        f"\\\\{place}\\canary",
        "${jndi:ldap://" + place + "/canary}",
        f'<img src="http://{place}/canary">',
        f"{{{{ http://{place} }}}}",
        f"file://{place}/etc/passwd",
    ]


def is_untouched(trap: socket.socket) -> bool:
    try:
        caller, _ = trap.accept()
    except BlockingIOError:
        return True
    caller.close()
    return False


def remote_ports(program: Program) -> set[int]:
    """The ports of other machines, or of this one, that a process has connected to, those that came to it apart."""
    folder = Path("/proc") / str(program.pid)
    links = [str(link.readlink()) for link in (folder / "fd").iterdir()]
    inodes = {found[1] for link in links if (found := INODE.fullmatch(link))}
    rows = [line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:]]
    own = [row for row in rows if row[9] in inodes]
    listening = {port_of(row[1]) for row in own if row[3] == "0A"}
    return {port_of(row[2]) for row in own if row[3] != "0A" and port_of(row[1]) not in listening}


def port_of(address: str) -> int:
    port: int = struct.unpack(">H", bytes.fromhex(address.partition(":")[2]))[0]
    return port


def test_no_link_in_any_field_is_followed(site: Site, trap: socket.socket) -> None:
    http = site.api.http
    for link in links_to(trap):
        value = {"url": link, "$ref": link, "webhook": link, "callback_url": link, link: link}
        site.run("echo", json.dumps(value), metadata=value)
        site.slip_in({**ENTRY, "payload": json.dumps(value), "task_type": link, "queue": link})
        headers = dict.fromkeys(("Referer", "Origin", "Host", "X-Forwarded-Host", "Traceparent", "Forwarded"), link)
        http.get("/docs", headers=headers)
        http.get("/api/v1/events", headers=headers)
        http.post("/api/v1/tasks", json={"task_type": link, "payload": value, "idempotency_key": link}, headers=headers)
        http.post(f"/api/v1/queue/default/resume?callback={link}", headers=headers)
    site.see_entries_gone()

    assert is_untouched(trap)
    assert {site.system.server.port} == remote_ports(site.api)
    assert {site.system.server.port} == remote_ports(site.worker)


def test_the_trap_would_have_noticed(trap: socket.socket) -> None:
    with socket.create_connection(trap.getsockname()):
        assert not is_untouched(trap)
    assert is_untouched(trap)


def test_no_answer_tells_how_it_was_made(guarded: Site) -> None:
    http = guarded.api.http
    guarded.run("raise", '{"error": "unprintable"}', max_attempts=1)
    answers = [
        http.post("/api/v1/tasks", content=b"\xff\x00{", headers={"Content-Type": "application/json"}),
        http.post("/api/v1/tasks/batch", content=b"[" * 100_000, headers={"Content-Type": "application/json"}),
        http.post("/api/v1/dlq/purge", headers={"X-API-Key": "wrong"}),
        http.post(f"/api/v1/dlq/{'0' * 32}/requeue", headers=WITH_KEY),
        http.get("/api/v1/tasks?limit=x"),
        http.get("/nowhere"),
        http.put("/api/v1/tasks"),
        http.get("/ready"),
        http.get("/health"),
        http.get("/api/v1/dlq"),
    ]

    told = [(word, answer.url) for answer in answers for word in TRACES if word in answer.text]
    assert [] == told
    servers = {name for answer in answers for name in ("server", "x-powered-by", "via") if name in answer.headers}
    assert set() == servers
