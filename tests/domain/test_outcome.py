import asyncio
from typing import Never

import pytest

from dtq.domain.outcome import (
    AttemptResult,
    Failed,
    PermanentError,
    RetryableError,
    classify,
    failed,
    timed_out,
    undecodable,
    unknown_task_type,
    worker_lost,
)
from dtq.domain.task import Failure


class DriverError(Exception):
    """What a driver raises where its server is away."""


class ChildOfDriverError(DriverError):
    pass


class BothWays(PermanentError, RetryableError):
    pass


class Mute(Exception):
    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason

    def __str__(self) -> Never:
        raise self.reason


def is_retryable(error: BaseException, *listed: type[BaseException]) -> bool:
    return classify(error, retryable=listed).failure.retryable


@pytest.mark.parametrize("error", [RetryableError(), TimeoutError(), type("Child", (RetryableError,), {})()])
def test_the_contracts_classes_are_always_retryable(error: Exception) -> None:
    assert is_retryable(error)


@pytest.mark.parametrize("error", [DriverError(), ChildOfDriverError()])
def test_a_listed_class_and_its_children_are_retryable(error: Exception) -> None:
    assert (False, True) == (is_retryable(error), is_retryable(error, DriverError))


@pytest.mark.parametrize(
    "error",
    [
        PermanentError(),
        ValueError(),
        ConnectionError(),
        ConnectionResetError(),
        OSError(),
        RecursionError(),
        MemoryError(),
        SystemExit(1),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        GeneratorExit(),
        ExceptionGroup("several", [RetryableError(), ValueError()]),
        ExceptionGroup("several", [RetryableError(), ExceptionGroup("inner", [DriverError(), OSError()])]),
        BaseExceptionGroup("several", [RetryableError(), SystemExit(1)]),
    ],
)
def test_what_is_in_no_list_is_permanent(error: BaseException) -> None:
    assert not is_retryable(error, DriverError)


@pytest.mark.parametrize("listed", [(), (PermanentError,), (Exception,), (BaseException,)])
def test_a_permanent_error_wins_over_every_list(listed: tuple[type[BaseException], ...]) -> None:
    assert (False, False) == (is_retryable(PermanentError(), *listed), is_retryable(BothWays(), *listed))


@pytest.mark.parametrize(
    "error",
    [
        ExceptionGroup("several", [RetryableError()]),
        ExceptionGroup("several", [TimeoutError(), ChildOfDriverError(), RetryableError()]),
        ExceptionGroup("several", [DriverError(), ExceptionGroup("inner", [RetryableError(), DriverError()])]),
    ],
)
def test_a_group_of_retryable_errors_is_retryable(error: BaseException) -> None:
    assert is_retryable(error, DriverError)


def test_a_group_whose_class_is_listed_is_retryable_unless_a_permanent_error_is_in_it() -> None:
    inner = ExceptionGroup("inner", [PermanentError()])

    assert is_retryable(ExceptionGroup("several", [ValueError()]), ExceptionGroup)
    assert not is_retryable(ExceptionGroup("several", [RetryableError(), inner]), ExceptionGroup, Exception)


def test_groups_may_be_nested_as_deep_as_a_handler_likes() -> None:
    error: Exception = RetryableError()
    for _ in range(100_000):
        error = ExceptionGroup("outer", [error])

    assert is_retryable(error)


def test_a_failure_names_class_and_message() -> None:
    failure = Failure(error_class="ValueError", error_message="no such user", retryable=False)

    assert Failed(failure=failure, kind=AttemptResult.FAILURE) == classify(ValueError("no such user"), retryable=())


def test_a_timeout_inside_the_handler_is_a_failure_and_not_our_timeout() -> None:
    assert AttemptResult.FAILURE is classify(TimeoutError(), retryable=()).kind


@pytest.mark.parametrize("length", [0, 499, 500, 501, 100_000])
def test_a_message_is_cut_and_its_length_decides_nothing(length: int) -> None:
    failure = classify(RetryableError("x" * length), retryable=()).failure

    assert ("x" * min(length, 500), True) == (failure.error_message, failure.retryable)


def test_a_message_is_cleaned() -> None:
    failure = classify(ValueError("a\nb\x00c\u2028d\ud800e"), retryable=()).failure

    assert "a b c d e" == failure.error_message


def test_the_name_of_a_class_is_cleaned_and_cut() -> None:
    error = type("Bad\n" + "x" * 200, (Exception,), {})()

    assert "Bad " + "x" * 96 == classify(error, retryable=()).failure.error_class


@pytest.mark.parametrize(
    "reason", [ValueError(), RecursionError(), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_an_error_that_cannot_be_printed_is_still_a_failure(reason: BaseException) -> None:
    failure = classify(Mute(reason), retryable=(Mute,)).failure

    message = f"no message: __str__ raised {type(reason).__name__}"
    assert ("Mute", message, True) == (failure.error_class, failure.error_message, failure.retryable)


@pytest.mark.parametrize(
    ("outcome", "error_class", "message", "retryable", "kind"),
    [
        (timed_out(1.5), "TimeoutError", "no result within 1.5 s", True, AttemptResult.TIMEOUT),
        (timed_out(3600), "TimeoutError", "no result within 3600 s", True, AttemptResult.TIMEOUT),
        (unknown_task_type("nope"), "UnknownTaskType", "unknown_task_type:nope", False, AttemptResult.ERROR),
        (undecodable("not valid JSON"), "PayloadNotDecodable", "not valid JSON", False, AttemptResult.ERROR),
        (worker_lost(), "WorkerLost", "the worker was lost during this attempt", True, AttemptResult.ERROR),
    ],
)
def test_what_keeps_an_attempt_from_an_answer_has_a_name(
    *, outcome: Failed, error_class: str, message: str, retryable: bool, kind: AttemptResult
) -> None:
    failure = Failure(error_class=error_class, error_message=message, retryable=retryable)

    assert Failed(failure=failure, kind=kind) == outcome


def test_a_described_failure_is_cleaned_and_cut() -> None:
    failure = failed("A\nB", "x\n" * 400, retryable=True).failure

    assert ("A B", "x " * 250) == (failure.error_class, failure.error_message)


def test_the_results_are_the_contracts() -> None:
    assert ["success", "failure", "timeout", "error"] == [result.value for result in AttemptResult]
