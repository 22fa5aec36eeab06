"""Handlers that raise what cannot be told, and that return text which is taken for JSON."""

from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from dtq import TaskContext, task

Payload = dict[str, Any]


class Words(str):
    """Text that does not want to be cut."""

    __slots__ = ()

    def __getitem__(self, _: object) -> str:
        raise SystemExit(4)


class Wordy(Exception):
    def __str__(self) -> str:
        return Words("too many words")


class Nameless(type):
    """The kind of classes that do not tell their name."""

    @property
    def __name__(cls) -> NoReturn:  # type: ignore[override]  # that it is none is the point
        raise SystemExit(5)


class Anonymous(Exception, metaclass=Nameless):
    pass


class Liar(Exception):
    @property  # type: ignore[misc]  # that it cannot be set is the point
    def __class__(self) -> NoReturn:  # type: ignore[override]  # that it is none is the point
        raise SystemExit(6)


NO_TEXT: Any = 5


class Textless(Exception):
    def __str__(self) -> str:
        text: str = NO_TEXT
        return text


class Selfish(ExceptionGroup[Exception]):
    """A group that says of itself what is no group's business."""

    @property
    def exceptions(self) -> NoReturn:
        raise SystemExit(7)


ERRORS: dict[str, Callable[[], Exception]] = {
    "wordy": Wordy,
    "anonymous": Anonymous,
    "liar": Liar,
    "textless": Textless,
    "selfish": lambda: Selfish("alone", [ValueError()]),
}
TEXTS: dict[str, object] = {
    '{"a": 1}': {"a": 1},
    '{"a": ': None,
    '1}, "status": "forged", "x": {"y": 1': None,
    "": None,
    "NaN": None,
    "[" * 4000 + "]" * 4000: None,
    "{} {}": None,
}


@task("raise")
async def fail(payload: Payload, ctx: TaskContext) -> NoReturn:
    del ctx
    raise ERRORS[payload["error"]]()  # noqa: RSE102 - it is looked up, and called


@task("raise_sync")
def fail_in_thread(payload: Payload, ctx: TaskContext) -> NoReturn:
    del ctx
    raise ERRORS[payload["error"]]()  # noqa: RSE102 - it is looked up, and called


@task("give")
async def give(payload: Payload, ctx: TaskContext) -> object:
    del ctx
    return msgspec.Raw(payload["text"].encode())


@task("echo")
async def echo(payload: Payload, ctx: TaskContext) -> Payload:
    del ctx
    return payload
