"""Whether a Docker engine listens at all, asked before the Docker libraries are loaded."""

import os
import socket
from urllib.parse import urlsplit

from tests.servers.kinds import MissingServerError

DEFAULT_HOST = "unix:///var/run/docker.sock"
CONNECT_TIMEOUT_S = 1.0


def require_listener() -> None:
    """Return if something listens where DOCKER_HOST points."""
    host = os.environ.get("DOCKER_HOST") or DEFAULT_HOST
    try:
        _connect(host).close()
    except OSError as error:
        raise MissingServerError("container", f"nothing listens at {host} ({error})") from error


def _connect(host: str) -> socket.socket:
    parts = urlsplit(host)
    if parts.scheme != "unix":
        return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=CONNECT_TIMEOUT_S)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(CONNECT_TIMEOUT_S)
        connection.connect(parts.path)
    except OSError:
        connection.close()
        raise
    return connection
