"""A wrong call of a logger costs its caller nothing: one line says what can be said, and none of the arguments."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Never

import pytest
import structlog

from tests.adapters.listening import Log, listening, unharmed

CANARY = "canary-51c7"


def no_class(_: object) -> Never:
    """Refuse to say of which class a value is, even to isinstance."""
    raise ValueError(CANARY)


class Mute:
    """A value that refuses every question, with a word that no log may show."""

    def refuse(self, *_: object) -> Never:
        raise SystemExit(CANARY)

    __str__ = __repr__ = __format__ = __int__ = __float__ = __len__ = __eq__ = __hash__ = refuse
    __class__ = property(no_class)


class Slippery(str):
    """Text that cannot be cut or filled in."""

    __slots__ = ()

    def refuse(self, *_: object) -> Never:
        raise SystemExit(CANARY)

    __getitem__ = __mod__ = __repr__ = __eq__ = __hash__ = __format__ = refuse

    def __str__(self) -> str:
        return self


class Hidden(Exception):
    """An error that shows nobody where it comes from."""

    def refuse(self, *_: object) -> Never:
        raise SystemExit(CANARY)

    __traceback__ = property(refuse)
    __str__ = __repr__ = __bool__ = refuse
    __class__ = property(no_class)


Listen = Callable[[], AbstractContextManager[Log]]


@pytest.fixture(params=[True, False], ids=["json", "readable"])
def listen(request: pytest.FixtureRequest) -> Listen:
    return partial(unharmed, as_json=request.param)


Call = Callable[[Any], object]

BY_ANY: dict[str, Call] = {
    "not a number": lambda writer: writer.warning("spoken %d", CANARY),
    "too few": lambda writer: writer.warning("spoken %s %s", CANARY),
    "too many": lambda writer: writer.warning("spoken", CANARY, CANARY),
    "no such name": lambda writer: writer.warning("spoken %(name)s", {CANARY: 1}),
    "unknown format": lambda writer: writer.warning("spoken %y", CANARY),
    "mute argument": lambda writer: writer.warning("spoken %s", Mute()),
    "slippery text": lambda writer: writer.warning(Slippery("spoken %s"), CANARY),
    "error that hides": lambda writer: writer.warning("spoken %s", Hidden()),
    "as an error": lambda writer: writer.error("spoken %d", CANARY),
    "as critical": lambda writer: writer.critical("spoken %d", CANARY),
    "as an exception": lambda writer: writer.exception("spoken %d", CANARY),
    "of a level": lambda writer: writer.log(logging.WARNING, "spoken %d", CANARY),
    "of a level between": lambda writer: writer.log(35, "spoken %d", CANARY),
}
BY_LOGGING: dict[str, Call] = {
    "extra that clobbers": lambda writer: writer.warning("spoken", extra={"message": CANARY}),
    "extra that clobbers args": lambda writer: writer.warning("spoken", extra={"args": CANARY, "levelname": CANARY}),
    "extra that is none": lambda writer: writer.warning("spoken", extra=3),
    "a field as structlog has": lambda writer: writer.warning("spoken", user=CANARY),
    "a stack level that is none": lambda writer: writer.warning("spoken", stacklevel=CANARY),
}
BY_STRUCTLOG: dict[str, Call] = {
    "event twice": lambda writer: writer.warning("spoken", event=CANARY),
    "async": lambda writer: asyncio.run(writer.awarning("spoken %d", CANARY)),
    "async exception": lambda writer: asyncio.run(writer.aexception("spoken %d", CANARY)),
    "level that is none": lambda writer: writer.log("spoken", "spoken %d", CANARY),
}


def one_line(log: Log) -> str:
    (line,) = log.text.splitlines()
    assert CANARY not in line
    return line


@pytest.mark.parametrize("name", [*BY_ANY, *BY_LOGGING])
def test_a_wrong_call_through_logging_is_a_line_without_its_arguments(
    listen: Listen, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with listen() as log:
        {**BY_ANY, **BY_LOGGING}[name](logging.getLogger("a_library"))

    line = one_line(log)
    assert "spoken" in line
    assert "logging_error" in line
    assert ("", "") == capsys.readouterr()


@pytest.mark.parametrize("name", [*BY_ANY, *BY_STRUCTLOG])
def test_a_wrong_call_through_structlog_is_a_line_without_its_arguments(listen: Listen, name: str) -> None:
    with listen() as log:
        {**BY_ANY, **BY_STRUCTLOG}[name](structlog.get_logger())

    line = one_line(log)
    assert "spoken" in line
    assert "logging_error" in line


# pytest and its plugins ask questions of each value: so these are made in the test
@pytest.mark.parametrize(
    "make",
    [
        lambda: 1,
        lambda: 0,
        lambda: "x",
        lambda: (),
        lambda: (1,),
        lambda: (1, 2, 3),
        Mute,
        Hidden,
        lambda: (Hidden, Hidden(), None),
    ],
)
def test_an_error_that_is_none_costs_no_line(listen: Listen, make: Callable[[], Any]) -> None:
    exc_info = make()
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "spoken", (), None)
    record.exc_info = exc_info
    with listen() as log:
        logging.getLogger().handle(record)
        structlog.get_logger().error("spoken", exc_info=exc_info)

    assert ["spoken" in line for line in log.text.splitlines()] == [True, True]
    assert CANARY not in log.text


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("name", Mute),
        ("levelname", Mute),
        ("levelname", list),
        ("levelname", lambda: CANARY),
        ("args", lambda: 3),
        ("args", Mute),
    ],
)
def test_a_record_made_by_hand_costs_no_line(listen: Listen, field: str, make: Callable[[], object]) -> None:
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "spoken", (), None)
    setattr(record, field, make())

    with listen() as log:
        logging.getLogger().handle(record)

    assert "spoken" in one_line(log)


@pytest.mark.parametrize("make", [Mute, lambda: Slippery("x"), lambda: None, lambda: 3, lambda: b"x", Hidden])
def test_what_is_said_may_be_anything(listen: Listen, make: Callable[[], Any]) -> None:
    message = make()
    with listen() as log:
        logging.getLogger().warning(message)
        structlog.get_logger().warning(message)

    assert 2 == len(log.text.splitlines())
    assert CANARY not in log.text


def test_what_is_said_may_be_missing(listen: Listen) -> None:
    with listen() as log:
        logger = structlog.get_logger()
        logger.warning()
        logger.log()
        logger.debug()

    assert 2 == len(log.text.splitlines())
    assert 2 == log.text.count("logging_error")


@pytest.mark.parametrize(
    "make",
    [
        Mute,
        Hidden,
        lambda: Slippery("x"),
        lambda: 10**5000,
        lambda: type("Sly", (int,), {"__repr__": Mute.refuse})(3),
        lambda: [Mute()],
    ],
)
def test_a_field_may_hold_anything(listen: Listen, make: Callable[[], object]) -> None:
    value = make()
    with listen() as log:
        structlog.get_logger().bind(bound=value).warning(
            "spoken", given=value, self=value, name=value, method_name=value
        )

    assert "spoken" in one_line(log)


def test_right_calls_are_lines_as_ever() -> None:
    with listening() as log:
        library, own = logging.getLogger("a_library"), structlog.get_logger()
        for logger in (library, own):
            logger.warning("%s of %d", "one", 2)
            logger.warning("%(name)s", {"name": "named"})
            logger.warning("100 %")
            logger.critical("last")
            logger.debug("unheard")
        own.log(35, "between")
        own.msg(event="spoken")
        asyncio.run(own.ainfo("awaited %s", "one"))

    said = [(line["event"], line["level"]) for line in log.lines]
    each = [("one of 2", "warning"), ("named", "warning"), ("100 %", "warning"), ("last", "critical")]
    assert [*each, *each, ("between", "warning"), ("spoken", "info"), ("awaited one", "info")] == said
    assert "logging_error" not in log.text


def test_an_error_at_hand_is_named_by_exception_and_by_a_true_exc_info() -> None:
    with listening() as log:
        writers: list[Any] = [logging.getLogger(), structlog.get_logger()]
        for writer in writers:
            try:
                Mute().refuse()
            except SystemExit:
                writer.exception("spoken")
                writer.warning("spoken", exc_info=True)
                writer.warning("spoken", exc_info=1)

    assert ["SystemExit"] * 6 == [line["error_class"] for line in log.lines]
    assert ["test_wrong_calls.py" in line["trace"] for line in log.lines] == [True] * 6
    assert CANARY not in log.text


def test_other_handlers_still_learn_who_called() -> None:
    class Keeper(logging.Handler):
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def emit(self, record: logging.LogRecord) -> None:
            self.names.append(record.funcName)

    keeper, logger = Keeper(), logging.getLogger("a_library.with_a_handler")
    logger.addHandler(keeper)

    def caller() -> None:
        logger.warning("spoken")

    with listening(), listening():
        caller()
    logger.removeHandler(keeper)

    assert ["caller"] == keeper.names


def test_the_last_who_takes_over_hears_it() -> None:
    with listening() as first, listening() as last:
        BY_LOGGING["extra that clobbers"](logging.getLogger("a_library"))

    assert ([], 1) == (first.lines, len(last.lines))


def test_a_handler_of_a_library_prints_no_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("a_library.with_a_printer")
    printer = logging.StreamHandler()
    logger.addHandler(printer)

    with listening():
        logger.warning("spoken %d", CANARY)
    logger.removeHandler(printer)

    assert CANARY not in "".join(capsys.readouterr())
