import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any, Never

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


class Slippery(str):
    """Text that cannot be cut, compared, hashed or printed."""

    __slots__ = ()

    def refuse(self, *_: object) -> Never:
        raise ConnectionError

    __getitem__ = __eq__ = __hash__ = __str__ = __repr__ = __len__ = __format__ = refuse


class Nameless(type):
    """A class that says nothing of itself, and nothing true of what is an instance of it."""

    def refuse(cls, *_: object) -> Never:
        raise ConnectionError

    __name__ = __mro__ = property(refuse)
    __instancecheck__ = __subclasscheck__ = __eq__ = __hash__ = __repr__ = refuse


@cache
def secretive() -> type[Exception]:
    """Return a class of errors that refuse every question; pytest asks some of each class that a module names."""

    class Secretive(Exception, metaclass=Nameless):
        def refuse(self, *_: object) -> Never:
            raise ConnectionError

        __class__ = args = __traceback__ = __cause__ = __context__ = property(refuse)
        __eq__ = __hash__ = __str__ = __repr__ = __bool__ = __reduce__ = refuse

    return Secretive


def refusing() -> Exception:
    """Return one of them."""
    return secretive()()


Listed = Callable[[], tuple[type[BaseException], ...]]


class Liar(Exception):
    """An error that says it were another one."""

    __class__ = property(lambda _: RetryableError)


class Sayer(Exception):
    """An error with a text that is none."""

    def __init__(self, text: object) -> None:
        super().__init__()
        self.text = text

    def __str__(self) -> Any:
        return self.text


class Closed(ExceptionGroup[Exception]):
    """A group that shows others what it has not."""

    exceptions = property(lambda _: [RetryableError()])


@pytest.mark.parametrize(
    ("make", "error_class", "message"),
    [
        (lambda: Sayer(Slippery("secret")), "Sayer", "secret"),
        (lambda: Sayer(3), "Sayer", "no message: __str__ raised TypeError"),
        (lambda: Sayer(None), "Sayer", "no message: __str__ raised TypeError"),
        (refusing, "Secretive", "no message: __str__ raised ConnectionError"),
        (lambda: Mute(Liar()), "Mute", "no message: __str__ raised Liar"),
        (lambda: Liar("a lie"), "Liar", "a lie"),
        (lambda: type(Slippery("Smooth"), (Exception,), {})("x"), "Smooth", "x"),
        (lambda: ValueError(*["x" * 1000] * 1000), "ValueError", ("('" + "x" * 1000)[:500]),
        (lambda: KeyError(refusing()), "KeyError", "no message: __str__ raised ConnectionError"),
        (lambda: Closed("all", [ValueError()]), "Closed", "all (1 sub-exception)"),
    ],
)
@pytest.mark.parametrize("listed", [lambda: (), lambda: (secretive(),), lambda: (OSError, secretive())])
def test_an_error_that_refuses_to_be_looked_at_is_a_failure_all_the_same(
    make: Callable[[], BaseException],
    error_class: str,
    message: str,
    listed: Callable[[], tuple[type[BaseException], ...]],
) -> None:
    error = make()

    failure = classify(error, retryable=listed()).failure

    assert (error_class, message) == (failure.error_class, failure.error_message)
    assert (str, str) == (type(failure.error_class), type(failure.error_message))
    assert any(type(error) is one for one in listed()) is failure.retryable


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (lambda: [refusing()], True),
        (lambda: [RetryableError(), refusing()], True),
        (lambda: [refusing(), Liar()], False),
        (lambda: [Closed("inner", [PermanentError()])], False),
    ],
)
def test_a_group_of_them_is_what_each_of_them_is(inner: Callable[[], list[Exception]], *, expected: bool) -> None:
    assert expected is is_retryable(ExceptionGroup("several", inner()), secretive())


@pytest.mark.timeout(5)
def test_a_group_that_is_in_many_others_is_looked_at_once() -> None:
    error: Exception = RetryableError()
    for _ in range(200):
        error = ExceptionGroup("outer", [error, error])

    assert is_retryable(error)


def test_a_permanent_error_that_is_a_group_wins_as_well() -> None:
    class Both(PermanentError, ExceptionGroup[Exception]):
        pass

    assert not is_retryable(Both("several", [RetryableError()]), Exception)
    assert not is_retryable(ExceptionGroup("outer", [Both("several", [RetryableError()])]), Exception)


def test_what_led_to_an_error_may_be_as_long_as_it_likes() -> None:
    error = ValueError("the last one")
    last = error
    for number in range(100_000):
        last.__cause__ = ValueError(number)
        last = last.__cause__

    assert "the last one" == classify(error, retryable=()).failure.error_message


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
