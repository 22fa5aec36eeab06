"""A side effect that must not happen twice, although the handler may run again: `--tasks charge_once`."""

# ruff: noqa: INP001 - a file of its own, as a user has it, not a package

import os
from datetime import timedelta
from typing import Any, Final

from redis.asyncio import Redis

from dtq import TaskContext, idempotent_operation, task

REMEMBERED: Final = timedelta(hours=1)
"""Longer than the longest charge takes, and than all attempts together: after it the charge would be made again."""


@task("charge")
async def charge(payload: dict[str, Any], ctx: TaskContext) -> dict[str, Any]:
    """Charge once for each task, whatever becomes of the workers that try."""

    async def pay() -> str:
        # whatever has the side effect; its result is what every later attempt gets
        return f"{payload['amount']} paid in attempt {ctx.attempt}"

    # a worker tells its handlers where its own Redis is
    url = os.environ["DTQ_REDIS_URL"]  # noqa: TID251 - an example outside of dtq, which has settings of its own
    async with Redis.from_url(url) as client:
        receipt = await idempotent_operation(client, ctx.task_id, REMEMBERED, pay)
    return {"receipt": receipt, "attempt": ctx.attempt}
