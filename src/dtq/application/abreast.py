"""Asking for many things of one kind without asking for all of them at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

AT_ONCE: Final = 32
"""How many requests of one caller are under way together: half of what a broker's connections carry."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


async def abreast(items: Sequence[Item], ask: Callable[[Item], Awaitable[Answer]]) -> list[Answer]:
    """Return the answer to each of *items*, in order, or raise what one of them raised."""
    answers: list[Answer] = []
    for start in range(0, len(items), AT_ONCE):
        answers += await asyncio.gather(*[ask(item) for item in items[start : start + AT_ONCE]])
    return answers
