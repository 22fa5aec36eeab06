"""Handlers that submit tasks, and wait for them, with the client that they are given."""

from typing import Any

from dtq import AsyncClient, Client, TaskContext, task

plain: list[Client] = []
awaited: list[AsyncClient] = []


@task("parent_in_thread")
def parent_in_thread(payload: dict[str, Any], ctx: TaskContext) -> str:
    del payload, ctx
    return plain[-1].submit("child", {"of": "a thread"}).task_id


@task("parent")
async def parent(payload: dict[str, Any], ctx: TaskContext) -> str:
    del payload, ctx
    return (await awaited[-1].submit("child", {"of": "a loop"})).task_id


@task("blocking_parent")
async def blocking_parent(payload: dict[str, Any], ctx: TaskContext) -> str:
    del payload, ctx
    return plain[-1].submit("child", {"of": "a loop"}).task_id


@task("waiting_parent_in_thread")
def waiting_parent_in_thread(payload: dict[str, Any], ctx: TaskContext) -> Any:
    del payload, ctx
    return plain[-1].wait(plain[-1].submit("child").task_id).result


@task("waiting_parent")
async def waiting_parent(payload: dict[str, Any], ctx: TaskContext) -> Any:
    del payload, ctx
    return (await awaited[-1].wait((await awaited[-1].submit("child")).task_id)).result


@task("child")
async def child(payload: dict[str, Any], ctx: TaskContext) -> str:
    del ctx
    return f"child of {payload.get('of')}"
