"""A server that somebody else runs, named by DTQ_TEST_REDIS_URL: used, never stopped."""

from typing import NoReturn
from urllib.parse import urlsplit

REDIS_PORT = 6379


class ExternalEngine:
    """Knows the address; what would end or freeze the server is refused."""

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or REDIS_PORT

    @property
    def pid(self) -> int:
        return self._refuse()

    def launch(self) -> None:
        self._refuse()

    def alive(self) -> bool:
        return True

    def log(self) -> str:
        return ""

    def kill(self) -> None:
        self._refuse()

    def stop(self) -> None:
        self._refuse()

    def pause(self) -> None:
        self._refuse()

    def resume(self) -> None:
        self._refuse()

    def remove(self) -> None:
        """Nothing of ours to remove: tests delete their own keys."""

    def _refuse(self) -> NoReturn:
        raise RuntimeError(f"{self.url} is not ours to start or stop: take the fixture own_redis_server")
