"""Errors that refuse to be named, printed or asked what they are; none of them may cost more than its own attempt."""

from collections.abc import Callable
from functools import cache
from typing import Any, Never

import pytest

from dtq.domain.outcome import PermanentError, RetryableError, classify


class Mute(Exception):
    """An error whose text raises another one."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason

    def __str__(self) -> Never:
        raise self.reason


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
    assert expected is classify(ExceptionGroup("several", inner()), retryable=(secretive(),)).failure.retryable


@pytest.mark.timeout(5)
def test_a_group_that_is_in_many_others_is_looked_at_once() -> None:
    error: Exception = RetryableError()
    for _ in range(200):
        error = ExceptionGroup("outer", [error, error])

    assert classify(error, retryable=()).failure.retryable


def test_a_permanent_error_that_is_a_group_wins_as_well() -> None:
    class Both(PermanentError, ExceptionGroup[Exception]):
        pass

    bare = Both("several", [RetryableError()])

    for error in (bare, ExceptionGroup("outer", [bare])):
        assert not classify(error, retryable=(Exception,)).failure.retryable


def test_what_led_to_an_error_may_be_as_long_as_it_likes() -> None:
    error = ValueError("the last one")
    last = error
    for number in range(100_000):
        last.__cause__ = ValueError(number)
        last = last.__cause__

    assert "the last one" == classify(error, retryable=()).failure.error_message
