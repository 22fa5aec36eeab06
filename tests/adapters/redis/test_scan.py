"""Stored names, piece by piece: those that begin with the very prefix, and each once in a piece."""

import pytest

from dtq.adapters.redis.scan import scan
from tests.adapters.redis.schema import Schema


async def test_a_prefix_finds_only_what_begins_with_it_character_by_character(schema: Schema) -> None:
    prefix = f"{schema.prefix}:[1-9]?*\\^"
    names = [f"{prefix}:x", f"{schema.prefix}:1ab^:x"]
    for name in names:
        await schema.call("SET", name, "1", "PX", 60_000)

    found, cursor = set[str](), None
    while cursor != "0":
        cursor, piece = await scan(schema.client, cursor or "0", prefix=f"{prefix}:", limit=10)
        found |= {*piece}

    assert {*names[:1]} == found


async def test_what_the_server_names_twice_in_one_piece_is_one_name(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def repeating(*_: object) -> object:
        return ["0", ["dtq:b", "dtq:a", "dtq:b"]]

    monkeypatch.setattr(schema.client, "call", repeating)

    assert ("0", ("dtq:b", "dtq:a")) == await scan(schema.client, "0", prefix="dtq:", limit=10)
