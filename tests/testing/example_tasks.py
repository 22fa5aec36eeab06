"""The tasks that the tests of dtq.testing run."""

import asyncio
import threading
from typing import Annotated, Any

from msgspec import Meta, Struct

from dtq import PermanentError, RetryableError, TaskContext, task


class Greeting(Struct):
    name: str
    times: Annotated[int, Meta(ge=1)] = 1


class Greeted(Struct):
    text: str


@task("greet")
async def greet(payload: Greeting, ctx: TaskContext) -> Greeted:
    del ctx
    return Greeted(text=" ".join([f"Hello, {payload.name}!"] * payload.times))


@task("greet_in_thread")
def greet_in_thread(payload: Greeting, ctx: TaskContext) -> str:
    del ctx
    return f"{payload.name} in {threading.current_thread().name.partition('_')[0]}"


@task("flaky")
async def flaky(payload: dict[str, Any], ctx: TaskContext) -> int:
    if ctx.attempt <= payload["fails"]:
        raise RetryableError("not yet")
    return ctx.attempt


@task("never")
async def never(payload: dict[str, Any], ctx: TaskContext) -> None:
    del payload, ctx
    raise PermanentError("no attempt can succeed")


@task("hang")
async def hang(payload: dict[str, Any], ctx: TaskContext) -> None:
    del payload, ctx
    await asyncio.Event().wait()


@task("broken_in_thread")
def broken_in_thread(payload: dict[str, Any], ctx: TaskContext) -> None:
    del payload, ctx
    raise PermanentError("no attempt can succeed")


@task("no_json")
async def no_json(payload: dict[str, Any], ctx: TaskContext) -> object:
    del payload, ctx
    return object()


@task("cancels_itself")
async def cancels_itself(payload: dict[str, Any], ctx: TaskContext) -> None:
    del payload, ctx
    raise asyncio.CancelledError
