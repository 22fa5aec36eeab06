"""Tasks of one's own: `dtq worker run --tasks examples.my_tasks --queue greetings`, started in the folder above."""

# ruff: noqa: INP001 - a file of its own, as a user has it, not a package

from typing import Any

from dtq import PermanentError, RetryableError, TaskContext, task


@task("greet")
async def greet(payload: dict[str, Any], ctx: TaskContext) -> dict[str, Any]:
    """Greet; without a name no attempt can succeed, so that is permanent."""
    if "name" not in payload:
        raise PermanentError("the payload has no name")
    return {"text": f"Hello, {payload['name']}!", "attempt": ctx.attempt}


@task("fetch_twice", retry_on=(OSError,))
async def fetch_twice(payload: dict[str, Any], ctx: TaskContext) -> dict[str, Any]:
    """Fail the first time in a way that is worth another attempt."""
    if ctx.attempt == 1:
        raise RetryableError("not there yet")
    return {"found": payload, "seconds_left": ctx.remaining()}


@task("count_words", cpu_bound=True)
def count_words(payload: dict[str, Any], ctx: TaskContext) -> dict[str, int]:
    """Sync functions run in threads, which nobody can stop: this one looks at its deadline itself."""
    words = str(payload["text"]).split()
    counted = 0
    for _ in words:
        if ctx.remaining() <= 0:
            raise RetryableError("out of time")
        counted += 1
    return {"words": counted}
