"""How a finding names what it is about, and what a person is to do."""

from msgspec.structs import replace

from dtq.domain.facts import HeartbeatFact, MemberFact, NameFact, QueueFact, Record, Role, TaskFact
from dtq.domain.idempotency import RecordState
from dtq.domain.task import TaskId
from dtq.domain.timing import CLOCK_TOLERANCE
from tests.domain.patients import ENDED, OWN, QUEUED, a_key, an_entry, found, keyed, kinds
from tests.factories import NOW, QUEUE, WORKER, a_heartbeat


def test_a_record_whose_deletion_would_lose_its_task_says_so() -> None:
    (waits,) = found(TaskFact(task_id=TaskId("f" * 32), record=Record(fault="x"), scheduled=True))
    (other,) = found(TaskFact(task_id=TaskId("f" * 32), record=Record(fault="x")))

    assert "its record cannot be read: x; it waits for its time: deleting its record loses it" == waits.detail
    assert ("its record cannot be read: x", "f" * 32) == (other.detail, other.task_id)


def test_what_is_scheduled_without_a_record_is_said_to_be_lost() -> None:
    (known,), (foreign,) = (found(MemberFact(TaskId(one), Record())) for one in ("f" * 32, "x\n" * 100))

    assert "the task is lost; submit it again" in known.detail
    assert ("f" * 32, None) == (known.task_id, known.own_name)
    assert "x " * 50 == foreign.task_id


def test_every_repair_has_a_name_for_the_trail() -> None:
    entry = an_entry(None, fields={})
    result = NameFact(name="dtq:result:x", role=Role.RESULT, is_eternal=True, task_id=TaskId("f" * 32))
    facts = (
        entry,
        result,
        QueueFact(name="No Queue", is_registered=True),
        a_key(keyed(ENDED), state=RecordState.FAILED),
    )
    names = [(one.task_id, one.queue, one.own_name) for fact in facts for one in found(fact)]

    assert [
        (QUEUED.task_id, QUEUE, f"{QUEUE} p{QUEUED.priority} {OWN}"),
        ("f" * 32, None, "dtq:result:x"),
        (None, None, "No Queue"),
        (QUEUED.task_id, QUEUE, f"{QUEUE} k"),
    ] == names


def test_what_strangers_wrote_is_shown_cut_and_without_control_characters() -> None:
    (finding,) = found(NameFact(name="dtq:\x1b[2J" + "x" * 1_000, role=Role.FOREIGN))

    assert "\x1b" not in finding.subject
    assert len(finding.subject) == 100


def test_a_heartbeat_may_be_as_far_ahead_as_clocks_may_be_apart() -> None:
    ahead = replace(a_heartbeat(), last_heartbeat=NOW + CLOCK_TOLERANCE)

    assert [] == kinds(HeartbeatFact(worker=WORKER, heartbeat=ahead, is_known=True))
