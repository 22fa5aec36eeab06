from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.domain.admission import TaskSpec
from dtq.domain.change import Change
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.entry import dead_letter_fields, entry_fields, malformed_fields, rebuild, revive
from dtq.domain.lifecycle import submit
from dtq.domain.outcome import Outcome, Succeeded
from dtq.domain.possible import impossibility
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, QueueName, Receipt, Task, Version
from tests.domain.factories import LEASE, NOW, TASK_ID, TOKEN, WORKER, a_task
from tests.property.strategies import outcomes, queues, specs, wild_texts

ENTRY_IDS = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)).map(
    lambda id_: EntryId(f"{id_[0]}-{id_[1]}")
)
TIMES = st.integers(0, 253_402_300_799_999).map(lambda number: EntryId(f"{number}-0"))
NAMES = [*entry_fields(a_task()), *dead_letter_fields(a_task(TaskStatus.DEAD_LETTERED)), "payload"]
FIELDS = st.dictionaries(
    st.sampled_from(NAMES), wild_texts | st.integers().map(str) | st.sampled_from([TASK_ID, "echo_task", "default"])
)


def a_queued_task(spec: TaskSpec, *, attempt: int, entry_id: EntryId) -> Task:
    task = submit(replace(spec, delay=spec.delay * 0), task_id=TASK_ID, now=NOW, token=TOKEN).after
    return replace(task, attempt=attempt % spec.max_attempts, entry_id=entry_id)


@given(spec=specs, attempt=st.integers(0, 99), entry_id=TIMES)
def test_a_task_comes_back_from_its_entry_as_it_was(spec: TaskSpec, attempt: int, entry_id: EntryId) -> None:
    task = a_queued_task(spec, attempt=attempt, entry_id=entry_id)
    receipt = Receipt(task.queue, task.priority, entry_id)

    rebuilt = rebuild({**entry_fields(task), "payload": spec.payload}, receipt=receipt)

    assert rebuilt is not None
    lost = {"created_at": rebuilt.created_at, "available_at": rebuilt.available_at, "metadata": "{}"}
    assert replace(task, **lost, ttl_at=None, version=rebuilt.version) == rebuilt
    assert not rebuilt.is_stored
    assert impossibility(replace(rebuilt, version=TOKEN)) is None
    assert entry_fields(task) == entry_fields(rebuilt)


@given(spec=specs, attempt=st.integers(0, 99), entry_id=TIMES, outcome=outcomes)
def test_a_dead_task_comes_back_from_its_letter_as_dead_as_it_was(
    spec: TaskSpec, attempt: int, entry_id: EntryId, outcome: Outcome
) -> None:
    assume(not isinstance(outcome, Succeeded))
    queued = a_queued_task(spec, attempt=spec.max_attempts - 1 if attempt else 0, entry_id=entry_id)
    dead = dead_after_a_run(replace(queued, max_attempts=queued.attempt + 1), outcome)

    revived = revive({**dead_letter_fields(dead), "payload": spec.payload}, dlq_entry_id=entry_id)

    assert revived is not None
    assert impossibility(replace(revived, version=TOKEN)) is None
    kept = ["task_id", "queue", "task_type", "priority", "max_attempts", "timeout", "idempotency_key", "payload"]
    kept += ["status", "attempt", "failure", "worker_id", "finished_at"]
    assert [getattr(dead, name) for name in kept] == [getattr(revived, name) for name in kept]
    assert dead_letter_fields(dead) == dead_letter_fields(revived)


def dead_after_a_run(task: Task, outcome: Outcome) -> Task:
    receipt = task.receipt
    assert receipt is not None
    claim = Claim(worker=WORKER, lease=LEASE, receipt=receipt)
    policy = FailurePolicy()
    started = start(replace(task, ttl_at=None), claim=claim, now=NOW, token=Version("start"), policy=policy)
    assert isinstance(started, Change)
    ended = finish(started.after, lease=LEASE, outcome=outcome, now=NOW, token=TOKEN, policy=policy, jitter=0)
    assert isinstance(ended, Change)
    return ended.after


@given(fields=FIELDS, queue=queues | st.just(QueueName("default")), priority=st.integers(0, 9), entry_id=ENTRY_IDS)
def test_whatever_stands_in_a_stream_is_a_task_or_malformed(
    fields: dict[str, str], queue: QueueName, priority: int, entry_id: EntryId
) -> None:
    receipt = Receipt(queue, priority, entry_id)

    task = rebuild(fields, receipt=receipt)

    if task is not None:
        assert (TaskStatus.QUEUED, receipt) == (task.status, task.receipt)
        assert impossibility(replace(task, version=TOKEN)) is None
    letter = malformed_fields(fields, receipt=receipt, at=NOW)
    assert letter.keys() == dead_letter_fields(a_task(TaskStatus.DEAD_LETTERED)).keys()
    assert revive(letter, dlq_entry_id=entry_id) is None
    "".join(letter.values()).encode()


@given(fields=FIELDS, entry_id=ENTRY_IDS)
def test_whatever_stands_in_the_dead_letters_is_a_task_or_malformed(fields: dict[str, str], entry_id: EntryId) -> None:
    task = revive(fields, dlq_entry_id=entry_id)

    assert task is None or TaskStatus.DEAD_LETTERED is task.status
    assert task is None or impossibility(replace(task, version=TOKEN)) is None
