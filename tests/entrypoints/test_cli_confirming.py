"""What is typed at a confirmation, byte by byte."""

import io
import sys

import pytest

from dtq.domain.outcome import classify
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, document, end, submitted

__all__ = ["backend", "printed"]

BROKEN = classify(ValueError("the lamp is broken"), retryable=())


class Typed(io.TextIOWrapper):
    """A terminal as Python opens it, at which these bytes are typed."""

    def isatty(self) -> bool:
        return True


def test_an_answer_that_is_no_text_is_no_yes(
    backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(printed)
    end(backend, BROKEN)
    monkeypatch.setattr(sys, "stdin", Typed(io.BytesIO(b"y\xff\n"), encoding="utf-8", errors="strict"))

    assert 2 == main(["purge-dlq"])

    assert printed()[1].endswith("[y/N] dtq: nothing was done\n")
    main(["dlq", "list", "--json"])
    assert 1 == document(printed)["dlq_depth"]


def test_a_stdin_that_was_read_before_is_asked_all_the_same(
    backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(printed)
    end(backend, BROKEN)
    stdin = Typed(io.BytesIO(b"other\ny\n"), encoding="utf-8", errors="strict")
    stdin.readline()
    monkeypatch.setattr(sys, "stdin", stdin)

    assert 0 == main(["purge-dlq"])
