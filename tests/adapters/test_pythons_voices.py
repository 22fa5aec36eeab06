"""What Python itself would write to stderr is one line of the log, and shows no text that could be a payload."""

import asyncio
import gc
import io
import json
import logging
import sys
import threading
import warnings
from typing import NoReturn

import pytest

from dtq.adapters.logs import LogObserver
from tests.adapters.listening import Log, listening

CANARY = "canary-77d0"


class Leaky:
    """An object that fails when it is forgotten."""

    def __del__(self) -> None:
        raise ValueError(CANARY)


class Deprecated(DeprecationWarning):
    """A warning that cannot be printed."""

    def __str__(self) -> NoReturn:
        raise SystemExit(CANARY)


def one_line(log: Log) -> str:
    (line,) = log.text.splitlines()
    assert CANARY not in line
    return line


both_forms = pytest.mark.parametrize("as_json", [True, False])


@both_forms
def test_an_error_that_python_ignores_is_told_by_class_and_place(
    *, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(as_json=as_json) as log:
        Leaky()
        gc.collect()

    line = one_line(log)
    for told in ("exception_ignored", "ValueError", "Leaky.__del__", "test_pythons_voices.py"):
        assert told in line
    assert ("", "") == capsys.readouterr()


def test_an_ignored_error_without_a_value_is_told_by_its_class() -> None:
    class Ignored:
        exc_type, exc_value, exc_traceback, err_msg, object = ValueError, None, None, CANARY, CANARY

    with listening() as log:
        sys.unraisablehook(Ignored())  # type: ignore[arg-type]  # it has the same fields

    (line,) = log.lines
    assert ("exception_ignored", "ValueError", "str") == (line["event"], line["error_class"], line["source"])
    assert CANARY not in log.text


@both_forms
def test_a_warning_is_told_by_class_and_place(*, as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(as_json=as_json) as log, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(f"{CANARY}\nand a second line", UserWarning, stacklevel=1)

    line = one_line(log)
    for told in ("warning", "UserWarning", "test_pythons_voices.py:"):
        assert told in line
    assert ("", "") == capsys.readouterr()


def test_a_warning_that_cannot_be_printed_is_told_as_well() -> None:
    with listening() as log:
        warnings.showwarning(Deprecated(), Deprecated, "x.py", 7)

    (line,) = log.lines
    assert ("Deprecated", "x.py:7") == (line["category"], line["where"])


def test_a_warning_that_was_asked_for_elsewhere_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr(warnings, "showwarning", lambda *given, **named: shown.append((given[4:], named)))

    with listening() as log:
        warnings.showwarning(UserWarning("a word"), UserWarning, "x.py", 7, sys.stdout)
        warnings.showwarning(UserWarning("a word"), UserWarning, "x.py", 7, file=sys.stdout)

    assert "" == log.text
    assert [((sys.stdout,), {}), ((), {"file": sys.stdout})] == shown


def test_a_warning_that_comes_through_logging_looks_the_same() -> None:
    with listening() as log:
        logging.captureWarnings(capture=True)
        warnings.showwarning(UserWarning(CANARY), UserWarning, "a folder/x.py", 7)
        logging.captureWarnings(capture=False)

    (line,) = log.lines
    assert ("warning", "UserWarning", "a folder/x.py:7") == (line["event"], line["category"], line["where"])
    assert CANARY not in log.text


@pytest.mark.filterwarnings("always")
def test_a_coroutine_that_nobody_awaits_is_named() -> None:
    async def forgotten() -> None:
        """Do nothing."""

    with listening() as log, warnings.catch_warnings():
        warnings.simplefilter("always")
        _ = forgotten()
        del _
        gc.collect()

    (line,) = log.lines
    assert ("warning", "RuntimeWarning") == (line["event"], line["category"])
    assert line["coroutine"].endswith("forgotten")


@both_forms
def test_a_callback_that_fails_in_a_loop_is_told_without_its_arguments(*, as_json: bool) -> None:
    def fail(_: str) -> NoReturn:
        raise ValueError(CANARY)

    async def run() -> None:
        asyncio.get_running_loop().call_soon(fail, CANARY)
        await asyncio.sleep(0)  # noqa: TID251 - the callback has its turn

    with listening(as_json=as_json) as log:
        asyncio.run(run())

    line = one_line(log)
    for told in ("Exception in callback", "ValueError", "test_pythons_voices.py"):
        assert told in line


class Clumsy(io.StringIO):
    """A stream in whose midst garbage is collected."""

    def write(self, text: str) -> int:
        Leaky()
        gc.collect()
        return super().write(text)


@pytest.mark.timeout(20)
def test_what_is_said_in_the_midst_of_a_line_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Clumsy()
    observer = LogObserver(stream, service="worker", level="INFO", as_json=True)
    once = iter([observer])

    def speak(_: object) -> None:
        for one in once:
            one.crashed("exception_ignored", ValueError(CANARY))

    with listening():
        monkeypatch.setattr(sys, "unraisablehook", speak)
        observer.noticed("fault", reason="first")

    assert ["fault", "exception_ignored"] == [json.loads(line)["event"] for line in stream.getvalue().splitlines()]


class Unruly(Exception):
    """An error that is neither true nor false."""

    def __bool__(self) -> NoReturn:
        raise ValueError(CANARY)


def test_an_error_in_a_thread_may_be_of_any_kind(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> NoReturn:
        raise Unruly

    with listening() as log:
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()

    (line,) = log.lines
    assert ("thread_crashed", "Unruly") == (line["event"], line["error_class"])
    assert ("", "") == capsys.readouterr()
