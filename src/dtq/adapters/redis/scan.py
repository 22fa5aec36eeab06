"""The names of stored keys, piece by piece."""

import re
from collections.abc import Sequence

from dtq.adapters.redis.client import Client


async def scan(client: Client, cursor: str, *, prefix: str, limit: int) -> tuple[str, Sequence[str]]:
    """Return the next cursor and about *limit* names that begin with *prefix*; '0' begins and ends.

    A piece has each name once. A later one may have it again, where the server's table grows or shrinks meanwhile.
    """
    following, names = await client.call("SCAN", cursor, "MATCH", f"{_literal(prefix)}*", "COUNT", limit)
    return following, tuple(dict.fromkeys(names))


def _literal(text: str) -> str:
    """Escape what a pattern would not take for itself, such as a prefix with a hash tag or a bracket."""
    return re.sub(r"([\\*?\[\]^-])", r"\\\1", text)
