"""The order of the commands inside one step: the new home, the record, what tells of it, and the old home last."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.delivery import FailurePolicy, finish
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from dtq.ports.backend import BackendOptions
from tests.adapters.redis.sent import new_forms, sent
from tests.factories import NOW, OPERATOR, a_change, a_fault, a_success, a_task, a_token

FORMS = new_forms(BackendOptions())
RECORD = "HSET task"
NEW_HOME = ("XADD stream", "ZADD retry", "XADD dead-letter", "SET result", "SET idempotency")
TELLING = ("XADD audit", "PUBLISH events")
OLD_HOME = ("ZREM retry", "XDEL stream", "XACK stream", "XDEL dead-letter")


def commands_of(change: object) -> list[str]:
    """Each command of a change in order, with the kind of key that it touches."""
    assert isinstance(change, Change)
    return [f"{command} {kind_of(str(key))}" for command, key, *_ in sent(change, forms=FORMS).steps]


def kind_of(key: str) -> str:
    """The kind of a key; of streams, which one."""
    _, first, *rest = key.split(":")
    return rest[0] if first == "stream" and rest[0] in {"dead-letter", "audit"} else first


def placed(commands: Sequence[str], wanted: Sequence[str]) -> list[int]:
    return [place for place, command in enumerate(commands) if command in wanted]


def finished(outcome: Outcome, *, attempt: int = 1) -> object:
    task = replace(a_task(status=TaskStatus.RUNNING, idempotency_key="key"), attempt=attempt)
    assert task.lease is not None
    later = NOW + timedelta(seconds=1)
    policy = FailurePolicy()
    return finish(task, lease=task.lease, outcome=outcome, now=later, token=a_token(), policy=policy, jitter=0)


def stored(status: TaskStatus) -> Task:
    return a_task(status=status, idempotency_key="key", available_at=NOW)


CHANGES = {
    "submit": a_change(idempotency_key="key"),
    "submit delayed": a_change(idempotency_key="key", delay=timedelta(seconds=60)),
    "succeed": finished(a_success()),
    "retry": finished(a_fault()),
    "bury": finished(a_fault(retryable=False)),
    "bury the last attempt": finished(a_fault(), attempt=3),
    "promote": lifecycle.promote(stored(TaskStatus.RETRYING), now=NOW, token=a_token()),
    "cancel queued": lifecycle.cancel(stored(TaskStatus.QUEUED), now=NOW, token=a_token(), by=OPERATOR),
    "cancel waiting": lifecycle.cancel(stored(TaskStatus.PENDING), now=NOW, token=a_token(), by=OPERATOR),
    "requeue": lifecycle.requeue(stored(TaskStatus.DEAD_LETTERED), now=NOW, token=a_token(), by=OPERATOR),
    "discard": lifecycle.discard(stored(TaskStatus.DEAD_LETTERED), now=NOW, token=a_token(), by=OPERATOR),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_new_home_comes_before_the_record_and_the_old_home_after_all_else(name: str) -> None:
    commands = commands_of(CHANGES[name])

    (record,) = placed(commands, [RECORD])
    assert all(place < record for place in placed(commands, NEW_HOME))
    assert all(place > record for place in placed(commands, TELLING))
    last = placed(commands, OLD_HOME)
    assert last == list(range(len(commands)))[len(commands) - len(last) :]


@pytest.mark.parametrize("name", CHANGES)
def test_the_record_is_written_by_one_command_and_expires(name: str) -> None:
    commands = commands_of(CHANGES[name])

    (record,) = placed(commands, [RECORD])
    assert "PEXPIRE task" == commands[record + 1]
    assert not [command for command in commands if command.startswith("HDEL")]


@pytest.mark.parametrize(
    ("name", "follow_up"),
    [("retry", "ZADD retry"), ("bury", "XADD dead-letter"), ("succeed", "SET result"), ("cancel queued", RECORD)],
)
def test_an_entry_is_acknowledged_last_after_record_event_and_follow_up(name: str, follow_up: str) -> None:
    commands = commands_of(CHANGES[name])

    assert ["XDEL stream", "XACK stream"] == commands[-2:]
    order = [commands.index(one) for one in (follow_up, RECORD, "PUBLISH events", "XACK stream")]
    assert sorted(order) == order


def test_a_promoted_task_has_its_entry_before_it_leaves_the_schedule_and_the_claims() -> None:
    commands = commands_of(CHANGES["promote"])

    assert ["ZREM retry", "ZREM retry"] == commands[-2:]
    assert commands.index("XADD stream") < commands.index(RECORD)
