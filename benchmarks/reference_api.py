"""The least that an API of the same kind does: Litestar reads a msgspec body and answers one, on the same server."""

import argparse
import asyncio
from typing import Any

import uvicorn
from litestar import Litestar, post
from msgspec import Struct

from dtq.entrypoints import loops
from dtq.entrypoints.api import uvicorn_config
from tests.servers.process import LOOPBACK


class Asked(Struct, kw_only=True):
    """A body as that of a submission."""

    task_type: str
    payload: dict[str, Any]
    priority: int = 5


class Answered(Struct, kw_only=True):
    """An answer as that to a submission."""

    task_id: str
    status: str


@post("/empty", status_code=202)
async def empty(data: Asked) -> Answered:
    """Do nothing with it."""
    return Answered(task_id="0" * 32, status=data.task_type)


def main() -> None:
    """Serve until a signal says stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    config = uvicorn_config(Litestar([empty], openapi_config=None, logging_config=None))
    config.host, config.port = LOOPBACK, parser.parse_args().port
    with loops.runner() as runner:
        runner.run(_served(config))


async def _served(config: uvicorn.Config) -> None:
    await asyncio.shield(uvicorn.Server(config).serve())


if __name__ == "__main__":
    main()
