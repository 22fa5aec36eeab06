"""What the command line says of an idempotency key that stands for something else."""

from dtq.domain.outcome import Succeeded
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, end, submit, submitted

__all__ = ["backend", "printed"]


def test_another_payload_under_a_used_key_is_told_in_words(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed, "--idempotency-key", "k")
    end(backend, Succeeded(result="1"))

    assert 0 == submit("--idempotency-key", "k", payload='{"a": 2}')

    out, err = printed()
    assert f"{task_id} succeeded (duplicate)\n" == out
    [line] = [line for line in err.splitlines() if "idempotency" in line]
    assert line.startswith(f"dtq: this idempotency key stands for task {task_id}, which was submitted with another pay")
    assert line.endswith("was not submitted")


def test_the_same_payload_in_another_writing_is_told_nothing_of(backend: Backend, printed: Printed) -> None:
    submitted(printed, "--idempotency-key", "k")
    end(backend, Succeeded(result="1"))

    assert 0 == submit("--idempotency-key", "k", payload='{ "a" : 1 }')

    assert "idempotency" not in printed()[1]
