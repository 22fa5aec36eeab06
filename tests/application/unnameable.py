"""Errors that raise in their turn, when they are asked for their name, their text or their class."""

from collections.abc import Callable
from typing import NoReturn


class Nameless(type):
    """The kind of classes that do not tell their name."""

    @property
    def __name__(cls) -> NoReturn:  # type: ignore[override]  # that it is none is the point
        raise ZeroDivisionError


class Anonymous(Exception, metaclass=Nameless):
    pass


class Liar(Exception):
    @property  # type: ignore[misc]  # that it cannot be set is the point
    def __class__(self) -> NoReturn:  # type: ignore[override]  # that it is none is the point
        raise ZeroDivisionError


class Textless(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


ERRORS: dict[str, Callable[[], Exception]] = {"anonymous": Anonymous, "liar": Liar, "textless": Textless}
