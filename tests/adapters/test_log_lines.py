"""What lines say of their surroundings, and what nobody can make them say."""

import asyncio
import gc
import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import pytest
import structlog
from msgspec.structs import replace
from structlog.contextvars import bound_contextvars, get_contextvars

from dtq.adapters.logs import FIELDS, LogHandler, in_context
from dtq.domain.task import QueueName, TaskId
from dtq.handlers import Registry, TaskContext, task
from tests.adapters.listening import WORKER, Log, listening

CANARY = "canary-8a61"
TASK_ID = TaskId("0" * 32)
AROUND = {"task_id": TASK_ID, "task_type": "say", "queue": "mail", "attempt": 2, "worker_id": WORKER}


@pytest.fixture
def log() -> Iterator[Log]:
    with listening() as log:
        yield log


def context() -> TaskContext:
    return TaskContext(
        task_id=TASK_ID,
        idempotency_key=CANARY,
        attempt=2,
        worker_id=WORKER,
        queue=QueueName("mail"),
        deadline=datetime(2026, 1, 1, tzinfo=UTC),
        seconds_left=lambda: 1.0,
    )


def say(word: object) -> None:
    logging.getLogger("handlers_of_mine.tasks").info("said %s", word)
    structlog.get_logger().info("said", word=word)


@task("say")
def say_sync(payload: Mapping[str, object], ctx: TaskContext) -> str:
    del ctx
    say(payload["word"])
    return "said"


@task("say.async")
async def say_async(payload: Mapping[str, object], ctx: TaskContext) -> str:
    del ctx
    await asyncio.sleep(0)  # noqa: TID251 - another task has its turn
    say(payload["word"])
    return "said"


def function_of(name: str) -> Any:
    handler = in_context(Registry.of(say_sync, say_async)).get(name)
    assert handler is not None
    return handler.function


def around(line: Mapping[str, object]) -> dict[str, object]:
    return {name: line[name] for name in AROUND}


def test_a_line_of_a_handler_in_a_thread_names_its_task(log: Log) -> None:
    with ThreadPoolExecutor(max_workers=1) as pool:
        assert "said" == pool.submit(copy_context().run, function_of("say"), {"word": "hello"}, context()).result()
        left_behind = pool.submit(get_contextvars).result()

    assert [AROUND, AROUND] == [around(line) for line in log.lines]
    assert ["said hello", "said"] == [line["event"] for line in log.lines]
    assert {} == left_behind


async def test_lines_of_handlers_that_run_together_name_each_its_own_task(log: Log) -> None:
    function = function_of("say.async")
    ids = [TaskId(f"{number:032}") for number in range(3)]

    async def run(one: TaskId) -> None:
        await function({"word": one}, replace(context(), task_id=one))

    await asyncio.gather(*map(run, ids))

    said = {(line["task_id"], line["word"]) for line in log.lines if "word" in line}
    assert {(one, one) for one in ids} == said
    assert {"say.async"} == {line["task_type"] for line in log.lines}
    assert {} == get_contextvars()


def test_a_handler_that_was_left_behind_takes_nothing_from_where_it_is_closed() -> None:
    its_own = copy_context()
    left_behind = its_own.run(function_of("say.async"), {"word": "hello"}, context())
    its_own.run(left_behind.send, None)

    with bound_contextvars(task_id="another"):
        left_behind.close()

        assert {"task_id": "another"} == get_contextvars()


def test_the_handlers_in_context_are_the_same_handlers() -> None:
    plain = Registry.of(say_sync, say_async)
    bound = in_context(plain)

    shown = [(one.name, one.is_async, one.retry_on, one.payload) for one in plain]
    assert shown == [(one.name, one.is_async, one.retry_on, one.payload) for one in bound]


def test_every_json_line_has_every_field() -> None:
    log = Log()

    with bound_contextvars(request_id="r-1"):
        log.observer.noticed("fault")
    log.observer.noticed("fault")

    first, second = log.lines
    assert set(FIELDS) <= set(first)
    assert ("r-1", False) == (first["request_id"], "request_id" in second)
    assert ("worker", WORKER, None) == (first["service"], first["worker_id"], first["task_id"])


class Level(IntEnum):
    """A number with a name."""

    HIGH = 3


def test_fields_keep_their_kind() -> None:
    with listening() as log:
        structlog.get_logger().warning("spoken", number=2**62, flag=True, part=0.5, level_of_mine=Level.HIGH, none=None)

    (line,) = log.lines
    assert (2**62, True, 0.5, 3, None) == (
        line["number"],
        line["flag"],
        line["part"],
        line["level_of_mine"],
        line["none"],
    )


def test_what_a_line_says_itself_wins_over_its_surroundings() -> None:
    log = Log()

    with bound_contextvars(task_id="outer", service="forged", level="forged", timestamp="forged"):
        log.observer.noticed("fault", task_id="inner")

    (line,) = log.lines
    assert ("inner", "worker", "warning") == (line["task_id"], line["service"], line["level"])
    assert "forged" not in log.text


QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
FORGERY = 'x\n2026-01-01T00:00:00Z [info] task changed status=succeeded\r\n\x1b[2K\u2028{"event":"forged"}'


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("place", ["event", "value", "name", "exception", "stack", "around", "library", "lone"])
def test_no_text_makes_a_line_of_its_own(place: str, *, as_json: bool) -> None:
    log = Log(as_json=as_json)

    match place:
        case "event":
            log.observer.noticed(FORGERY)
        case "name":
            log.observer.noticed("fault", **{FORGERY: "x"})
        case "around":
            with bound_contextvars(user=FORGERY):
                log.observer.noticed("fault")
        case "library":
            LogHandler(log.observer).handle(logging.LogRecord("x", 30, "x.py", 1, "%s", (FORGERY,), None))
        case "lone":
            log.observer.noticed("fault", reason="\ud800" + FORGERY)
        case _:
            log.observer.noticed("fault", **{place: FORGERY})

    (line,) = log.text.splitlines()
    assert line.isprintable()
    assert as_json or "status=" not in QUOTED.sub("", line)


def test_text_that_could_pass_for_fields_is_quoted() -> None:
    log = Log(as_json=False)

    log.observer.noticed("login ok status=succeeded", reason="no status=failed", path="a=b")

    assert "'login ok status=succeeded'" in log.text
    assert "reason='no status=failed'" in log.text
    assert "path='a=b'" in log.text


def raise_canary() -> None:
    secret = f"{CANARY} in a variable"
    raise ValueError(f"{CANARY} in a message, {secret}")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_crash_is_told_by_class_and_place_and_not_by_its_message(*, as_json: bool) -> None:
    log = Log(as_json=as_json)

    try:
        raise_canary()
    except ValueError as error:
        log.observer.crashed("crashed", error)

    (line,) = log.text.splitlines()
    assert "ValueError" in line
    assert "test_log_lines.py" in line
    assert "raise_canary" in line
    assert CANARY not in line


@pytest.mark.parametrize("as_json", [True, False])
def test_an_error_that_a_handler_logs_is_told_the_same_way(*, as_json: bool, log: Log) -> None:
    own = Log(as_json=as_json)
    own.observer.share()
    logger, library = structlog.get_logger(), LogHandler(own.observer)
    try:
        raise_canary()
    except ValueError as error:
        logger.exception("it failed")
        logger.warning("it failed", exc_info=error)
        logger.warning("it failed", exc_info=(ValueError, error, error.__traceback__))
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "it failed", (), (ValueError, error, None))
        library.handle(record)

    lines = own.text.splitlines()
    assert [True] * 4 == ["it failed" in line and "ValueError" in line for line in lines]
    assert CANARY not in own.text
    assert "" == log.text


def test_what_asyncio_says_of_a_forgotten_task_shows_no_error_text(log: Log) -> None:
    async def forgotten() -> None:
        raise_canary()

    async def forget() -> None:
        await asyncio.wait({asyncio.create_task(forgotten())})

    asyncio.run(forget())
    gc.collect()

    (line,) = log.lines
    assert ("Task exception was never retrieved", "asyncio", "ValueError") == (
        line["event"],
        line["logger"],
        line["error_class"],
    )
    assert CANARY not in log.text


def test_what_nobody_caught_is_told_in_one_line(log: Log) -> None:
    thread = threading.Thread(target=raise_canary)
    thread.start()
    thread.join()
    try:
        raise_canary()
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)

    assert ["thread_crashed", "crashed"] == [line["event"] for line in log.lines]
    assert CANARY not in log.text


def test_libraries_are_heard_from_warnings_on_and_handlers_from_the_level_that_was_set(log: Log) -> None:
    for name in ("a_library", "handlers_of_mine", "handlers_of_mine.deeper"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("trouble")

    heard = [(line["logger"], line["event"]) for line in log.lines]
    assert [
        ("a_library", "trouble"),
        ("handlers_of_mine", "chatter"),
        ("handlers_of_mine", "trouble"),
        ("handlers_of_mine.deeper", "chatter"),
        ("handlers_of_mine.deeper", "trouble"),
    ] == heard


def test_refused_submissions_are_told_only_to_those_who_ask_for_everything() -> None:
    usual, chatty = Log(), Log(level="DEBUG")

    for log in (usual, chatty):
        log.observer.noticed("submission_rejected", queue="x", reason="invalid_task")

    assert ([], ["debug"]) == (usual.lines, [line["level"] for line in chatty.lines])
