"""What becomes of whatever a handler does."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import NoReturn

import pytest
from msgspec.structs import replace

from dtq.adapters.memory.clock import settle
from dtq.application.execution import ExecutionRules, Executor, StopReason
from dtq.application.results import outcome_of
from dtq.domain.outcome import Failed, Succeeded
from dtq.domain.status import TaskStatus
from dtq.handlers import Registry, TaskContext, task
from tests.application import handlers
from tests.application.handlers import REGISTRY
from tests.application.stage import Hearing, TickingClock
from tests.application.world import World
from tests.factories import QUEUE, WORKER, a_task

S = TaskStatus


async def run_failing(world: World, error: str, *, task_type: str = "fail") -> tuple[TaskStatus, str, str]:
    await world.hire(retryable=(ConnectionError,))
    task_id = await world.submit(task_type, payload=json.dumps({"error": error}))
    await world.until(lambda: not world.staff[0].active)
    task = await world.task(task_id)
    assert task.failure is not None
    return task.status, task.failure.error_class, task.failure.error_message


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("retryable", (S.RETRYING, "RetryableError", "try again")),
        ("timeout", (S.RETRYING, "TimeoutError", "the handler's own")),
        ("broken", (S.RETRYING, "ConnectionResetError", "gone")),
        ("permanent", (S.DEAD_LETTERED, "PermanentError", "never")),
        ("value", (S.DEAD_LETTERED, "ValueError", "no")),
        ("exit", (S.DEAD_LETTERED, "SystemExit", "3")),
        ("interrupt", (S.DEAD_LETTERED, "KeyboardInterrupt", "")),
        ("cancelled", (S.DEAD_LETTERED, "CancelledError", "its own")),
        ("generator", (S.DEAD_LETTERED, "GeneratorExit", "")),
    ],
)
@pytest.mark.parametrize("task_type", ["fail", "fail_in_thread"])
async def test_an_error_decides_about_another_attempt_and_never_ends_the_worker(
    world: World, error: str, task_type: str, expected: tuple[TaskStatus, str, str]
) -> None:
    found = await run_failing(world, error, task_type=task_type)

    assert expected == found
    assert S.SUCCEEDED == await world.status(await world.submit())


async def test_an_error_that_the_handler_lists_is_retried(world: World) -> None:
    await world.hire()

    task_id = await world.submit("listed")

    assert S.RETRYING == await world.status(task_id)


async def test_retries_end_in_the_dead_letters_after_the_last_attempt(world: World) -> None:
    await world.hire()

    task_id = await world.submit("fail", payload='{"error": "retryable"}', max_attempts=3)
    await world.advance(10)

    assert [1, 2, 3] == [context.attempt for context in handlers.runs]
    assert S.DEAD_LETTERED == await world.status(task_id)


async def test_a_task_of_an_unknown_type_is_given_up_after_one_attempt(world: World) -> None:
    task_id = await world.submit()

    await world.hire(registry=Registry())

    task = await world.task(task_id)
    assert (S.DEAD_LETTERED, 1) == (task.status, task.attempt)
    assert task.failure is not None
    assert "unknown_task_type:note" == task.failure.error_message


@pytest.mark.parametrize("payload", ["[1]", "{", '{"a": NaN}', '{"a": 1e999}', "{" * 70])
async def test_a_payload_that_is_no_json_object_is_given_up_after_one_attempt(world: World, payload: str) -> None:
    task_id = await world.submit()
    world.rewrite(replace(await world.task(task_id), payload=payload))
    for stream in world.state.queue(QUEUE).bands.values():
        stream.entries = {entry: {**fields, "payload": payload} for entry, fields in stream.entries.items()}

    await world.hire()

    task = await world.task(task_id)
    assert (S.DEAD_LETTERED, 1) == (task.status, task.attempt)
    assert task.failure is not None
    assert "PayloadNotDecodable" == task.failure.error_class
    assert [] == handlers.runs


@pytest.mark.parametrize("value", ["nan", "infinity", "nan_key", "surrogate", "object", "circle"])
async def test_a_result_that_is_no_json_fails_for_good(world: World, value: str) -> None:
    await world.hire()

    task_id = await world.submit("give", payload=json.dumps({"value": value}))

    task = await world.task(task_id)
    assert S.DEAD_LETTERED == task.status
    assert task.failure is not None
    assert "ResultNotSerializable" == task.failure.error_class


@pytest.mark.parametrize(
    ("value", "expected"),
    [("nothing", "null"), ("null", '{"a":null,"b":[1.5,null]}'), ("integer", "1208925819614629174706176")],
)
async def test_a_result_is_kept_exactly(world: World, value: str, expected: str) -> None:
    await world.hire()

    task_id = await world.submit("give", payload=json.dumps({"value": value}))

    assert expected == (await world.view(task_id)).result


async def test_a_result_that_is_too_large_is_dropped_and_the_task_succeeds(world: World) -> None:
    await world.hire(result_max_bytes=8192)

    task_id = await world.submit("give", payload='{"value": "huge"}')

    view = await world.view(task_id)
    assert (S.SUCCEEDED, True) == (view.task.status, view.task.result_truncated)
    assert (None, False) == (view.result, view.result_expired)


def test_a_result_is_kept_up_to_the_limit_and_not_beyond() -> None:
    assert Succeeded(result='"abc"') == outcome_of("abc", max_bytes=5)
    assert Succeeded(result=None, truncated=True) == outcome_of("abcd", max_bytes=5)
    assert Succeeded(result=None, truncated=True) == outcome_of("\u00e4\u00e4", max_bytes=5)


async def test_an_awaitable_from_a_sync_handler_fails_for_good(world: World) -> None:
    await world.hire()

    task_id = await world.submit("promise")
    await world.until(lambda: not world.staff[0].active)

    task = await world.task(task_id)
    assert S.DEAD_LETTERED == task.status
    assert task.failure is not None
    assert "async def" in task.failure.error_message


async def test_a_handler_knows_its_attempt(world: World) -> None:
    staff = await world.hire()

    task_id = await world.submit("hold", timeout_ms=5_000, idempotency_key="key-1")
    await world.advance(2)

    (context,) = handlers.runs
    assert (task_id, "key-1", 1) == (context.task_id, context.idempotency_key, context.attempt)
    assert (staff.settings.worker_id, "default") == (context.worker_id, context.queue)
    assert 3.0 == context.remaining()
    assert 3.0 == (context.deadline - world.clock.now()).total_seconds()


@pytest.mark.parametrize("is_stranger", [False, True])
async def test_an_attempt_that_is_stopped_before_its_first_line_ends_all_the_same(*, is_stranger: bool) -> None:
    handlers.forget_all()
    clock, pool = TickingClock(), ThreadPoolExecutor(max_workers=1)
    rules = ExecutionRules(worker_id=WORKER, result_max_bytes=8192, retryable=())
    hearing = Hearing()
    executor = Executor(REGISTRY, clock=clock, pool=pool, rules=rules)
    attempt = hearing.begin(executor, a_task(task_type="note"))

    if is_stranger:
        next(one for one in asyncio.all_tasks() if one.get_name().startswith("handler-")).cancel()
    else:
        attempt.stop(StopReason.CANCEL)
    await settle()

    assert hearing.ended.is_set()
    (outcome,) = hearing.outcomes
    assert isinstance(outcome, Failed)
    assert ("CancelledError", False) == (outcome.failure.error_class, outcome.failure.retryable)
    assert [] == handlers.runs
    pool.shutdown()


async def test_a_handler_that_is_told_again_to_stop_may_clean_up_in_peace() -> None:
    told: list[str] = []

    @task("tidy_up")
    async def tidy_up(_: dict[str, object], __: TaskContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.sleep(timedelta(seconds=0.8))
            told.append("cleaned up")

    clock, pool = TickingClock(), ThreadPoolExecutor(max_workers=1)
    rules = ExecutionRules(worker_id=WORKER, result_max_bytes=8192, retryable=())
    hearing = Hearing()
    executor = Executor(Registry.of(tidy_up), clock=clock, pool=pool, rules=rules)
    attempt = hearing.begin(executor, a_task(task_type="tidy_up"))
    await settle()

    attempt.stop(StopReason.CANCEL)
    await clock.advance(timedelta(seconds=0.5))
    attempt.stop(StopReason.CANCEL)
    await clock.advance(timedelta(seconds=0.4))

    assert ["cleaned up"] == told
    assert hearing.ended.is_set()
    pool.shutdown()


class Unsayable(Exception):
    """An error with a text that cannot be cut."""

    def __str__(self) -> str:
        class Slippery(str):
            __slots__ = ()

            def __getitem__(self, _: object) -> NoReturn:
                raise ValueError

        return Slippery("secretive")


class Choosy(type):
    """A class that tells nobody what is an instance of it."""

    def __instancecheck__(cls, _: object) -> NoReturn:
        raise ValueError


class Faddy(Exception, metaclass=Choosy):
    """An error whose class refuses to say what is one."""


@task("fail", retry_on=(Faddy,))
async def unsayable(_: dict[str, object], __: TaskContext) -> NoReturn:
    raise Unsayable


@task("fail_in_thread", retry_on=(Faddy,))
def unsayable_in_thread(_: dict[str, object], __: TaskContext) -> NoReturn:
    raise Unsayable


@pytest.mark.parametrize("task_type", ["fail", "fail_in_thread"])
async def test_errors_that_cannot_be_told_free_their_slots_at_once(world: World, task_type: str) -> None:
    await world.hire(registry=Registry.of(unsayable, unsayable_in_thread), concurrency=2)

    ids = [await world.submit(task_type) for _ in range(5)]
    await world.until(lambda: not world.staff[0].active)

    failures = [(await world.task(one)).failure for one in ids]
    assert [("Unsayable", "secretive", False)] * 5 == [
        (one.error_class, one.error_message, one.retryable) for one in failures if one is not None
    ]


class Broken(ExecutionRules, frozen=True):
    """Rules that fail whoever asks them what may be tried again, as no rules should."""

    def __getattribute__(self, name: str) -> object:
        if name == "retryable":
            raise MemoryError("no room")
        return super().__getattribute__(name)


@pytest.mark.parametrize("task_type", ["fail", "fail_in_thread"])
async def test_an_attempt_ends_even_where_its_failure_cannot_be_told(task_type: str) -> None:
    handlers.forget_all()
    clock, pool = TickingClock(), ThreadPoolExecutor(max_workers=1)
    rules = Broken(worker_id=WORKER, result_max_bytes=8192, retryable=())
    executor = Executor(REGISTRY, clock=clock, pool=pool, rules=rules)

    hearing = Hearing()
    hearing.begin(executor, a_task(task_type=task_type, payload='{"error": "value"}'))
    await asyncio.wait_for(hearing.ended.wait(), timeout=10)

    (outcome,) = hearing.outcomes
    assert isinstance(outcome, Failed)
    assert ("UntoldError", False) == (outcome.failure.error_class, outcome.failure.retryable)
    pool.shutdown()


def test_every_handler_of_the_tests_is_registered() -> None:
    assert 10 == len(REGISTRY)
