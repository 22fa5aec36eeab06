"""Examination: each rule by itself, from facts to findings, and which facts are no findings."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.domain.acts import BuryEntry, HandBack, Register, RemoveEntry, Rewind
from dtq.domain.change import Change
from dtq.domain.diagnoses import DIAGNOSES
from dtq.domain.entry import entry_fields
from dtq.domain.examination import CONSUMER_AGE
from dtq.domain.facts import (
    LAST_ENTRY_ID,
    ConsumerFact,
    CountFact,
    EntryFact,
    HeartbeatFact,
    LetterFact,
    MemberFact,
    NameFact,
    QueueFact,
    ReadingFact,
    Record,
    Role,
    TaskFact,
)
from dtq.domain.findings import Kind
from dtq.domain.remedies import remedy
from dtq.domain.task import QueueName, Receipt, Task, TaskId, WorkerId
from tests.domain.patients import (
    ALL,
    BEARINGS,
    DEAD,
    ENDED,
    OTHER,
    OWN,
    PENDING,
    QUEUED,
    RUNNING,
    USING,
    an_entry,
    at_home,
    found,
    kinds,
    of_task,
)
from tests.factories import NOW, QUEUE, WORKER, a_heartbeat


@pytest.mark.parametrize("task", ALL)
def test_a_task_that_has_its_place_is_well(task: Task) -> None:
    assert [] == kinds(at_home(task))


@pytest.mark.parametrize("task", [QUEUED, PENDING, RUNNING])
def test_a_live_task_in_no_place_is_without_a_home(task: Task) -> None:
    assert [Kind.HOMELESS] == kinds(of_task(task))


def test_an_ended_task_needs_no_place() -> None:
    assert [] == kinds(of_task(ENDED))


def test_a_record_that_cannot_be_read_is_told_with_its_reason() -> None:
    (finding,) = found(TaskFact(task_id=TaskId("f" * 32), record=Record(fault="no such status")))

    assert (Kind.UNREADABLE, True) == (finding.kind, "no such status" in finding.detail)
    assert remedy(finding, using=USING) is None


@pytest.mark.parametrize(
    ("idle_s", "lives", "paused", "is_found"),
    [
        (60, False, False, True),
        (59, False, False, False),
        (60, True, False, False),
        (60, False, True, False),
        (12 * 3600, False, False, False),
    ],
)
def test_an_owner_must_be_silent_for_long_dead_and_expected(
    idle_s: int, *, lives: bool, paused: bool, is_found: bool
) -> None:
    idle = timedelta(seconds=idle_s)
    fact = of_task(RUNNING, entered=True, owner=WORKER, owner_lives=lives, idle=idle, paused=paused)

    assert ([Kind.ABANDONED] if is_found else []) == kinds(fact)


def test_a_running_task_whose_entry_nobody_owns_is_abandoned_and_a_queued_one_is_fresh() -> None:
    assert [Kind.ABANDONED] == kinds(of_task(RUNNING, entered=True))
    assert [] == kinds(of_task(QUEUED, entered=True))


def test_an_entry_that_was_read_and_has_no_owner_is_handed_back_by_nobody() -> None:
    (finding,) = found(of_task(QUEUED, entered=True, passed=True))

    assert HandBack(Receipt(QUEUE, QUEUED.priority, OWN), None) == remedy(finding, using=USING)


def test_without_a_group_a_running_task_gets_one() -> None:
    (finding,) = found(of_task(RUNNING, entered=True))

    assert Register(QUEUE) == remedy(finding, using=USING)


def test_a_missing_dead_letter_is_found_unless_it_may_be_trimmed_or_purged() -> None:
    late = replace(BEARINGS, letters_kept_since=NOW + timedelta(seconds=1))

    assert [Kind.LETTER_MISSING] == kinds(of_task(DEAD))
    assert [] == kinds(of_task(DEAD, trimmed=True))
    assert [] == kinds(of_task(DEAD), bearings=late)


@pytest.mark.parametrize("changes", [{"finished_at": None}, {"dlq_entry_id": None}])
def test_a_task_that_was_made_dead_by_hand_is_explained_by_nothing_and_loses_no_letter(changes: dict[str, Any]) -> None:
    task, late = replace(DEAD, **changes), replace(BEARINGS, letters_kept_since=NOW + timedelta(seconds=1))

    (finding,) = found(of_task(task, trimmed=True), bearings=late)

    assert (Kind.LETTER_MISSING, task.dlq_entry_id is None) == (finding.kind, "names no" in finding.detail)
    assert [] == kinds(LetterFact(entry_id=OWN, task_id=task.task_id, record=Record(task)))


@pytest.mark.parametrize(("fact", "status"), [(of_task(QUEUED), "queued"), (of_task(DEAD), "dead_lettered")])
def test_what_lost_its_place_gets_it_again_as_it_was(fact: TaskFact, status: str) -> None:
    (finding,) = found(fact)
    change = remedy(finding, using=USING)

    assert isinstance(change, Change)
    assert (status, None, None) == (change.after.status, change.after.entry_id, change.after.dlq_entry_id)
    assert USING.audit == change.audit


@pytest.mark.parametrize("task", [QUEUED, RUNNING])
def test_an_entry_that_its_task_names_is_well(task: Task) -> None:
    assert [] == kinds(an_entry(task))


@pytest.mark.parametrize("task", [replace(QUEUED, entry_id=OTHER), PENDING, DEAD, ENDED])
def test_an_entry_that_its_task_does_not_live_in_is_surplus(task: Task) -> None:
    (finding,) = found(an_entry(task))
    act = remedy(finding, using=USING)

    assert Kind.SURPLUS_ENTRY is finding.kind
    assert isinstance(act, RemoveEntry)
    assert task == act.task


def test_an_entry_without_a_record_is_stored_buried_or_removed() -> None:
    fields = entry_fields(QUEUED) | {"payload": "{}"}
    facts = {
        Change: an_entry(None, fields=fields),
        BuryEntry: an_entry(None, fields={"task_id": "nonsense"}),
        RemoveEntry: an_entry(None, fields=fields, cancelled=True),
    }

    for kind, fact in facts.items():
        (finding,) = found(fact)
        assert Kind.ORPHAN_ENTRY is finding.kind
        assert isinstance(remedy(finding, using=USING), kind)


def test_an_entry_without_a_record_is_told_by_the_task_that_it_names() -> None:
    told = [found(replace(an_entry(None, fields={"payload": "{}"}), task_id=name))[0].detail for name in ("gone", "")]

    assert ["its task gone is none that could run", "it names no task"] == told


def test_an_entry_whose_record_cannot_be_read_is_left_to_that() -> None:
    assert [] == kinds(EntryFact(receipt=Receipt(QUEUE, 5, OWN), task_id="x", record=Record(fault="spoiled")))


def test_only_a_task_that_waits_for_its_time_is_scheduled_rightly() -> None:
    wrong = [kinds(MemberFact(task.task_id, Record(task))) for task in ALL]

    assert [[Kind.STRAY_MEMBER], [], *[[Kind.STRAY_MEMBER]] * 3] == wrong
    assert [Kind.STRAY_MEMBER] == kinds(MemberFact(QUEUED.task_id, Record()))
    assert [] == kinds(MemberFact(QUEUED.task_id, Record(fault="spoiled")))


def test_a_dead_letter_counts_where_its_task_names_it_or_is_gone() -> None:
    def letter(task: Task | None) -> LetterFact:
        return LetterFact(entry_id=OWN, task_id=DEAD.task_id, record=Record(task))

    assert ([], []) == (kinds(letter(DEAD)), kinds(letter(None)))
    for task in (QUEUED, replace(DEAD, dlq_entry_id=OTHER), replace(DEAD, discarded=True, dlq_entry_id=None)):
        assert [Kind.LETTER_SURPLUS] == kinds(letter(task))


@pytest.mark.parametrize(
    ("role", "wrong_type", "is_eternal", "kind"),
    [
        (Role.TASK, "", False, None),
        (Role.BOUNDED, "", True, None),
        (Role.TASK, "", True, Kind.ETERNAL),
        (Role.LOCK, "", True, Kind.LOCK),
        (Role.TASK, "string", True, Kind.WRONG_TYPE),
        (Role.FOREIGN, "", False, Kind.FOREIGN),
    ],
)
def test_a_name_is_known_has_its_type_and_a_lifetime_or_bound(
    role: Role, wrong_type: str, kind: Kind | None, *, is_eternal: bool
) -> None:
    fact = NameFact(name="dtq:x", role=role, wrong_type=wrong_type, is_eternal=is_eternal)

    assert ([] if kind is None else [kind]) == kinds(fact)


@pytest.mark.parametrize("role", [Role.TASK, Role.RESULT, Role.KEY, Role.HEARTBEAT, Role.LOCK, Role.MARKS])
def test_every_name_of_dtq_gets_a_lifetime_and_handlers_names_none(role: Role) -> None:
    (ours,) = found(NameFact(name="dtq:x", role=role, is_eternal=True))
    (theirs,) = found(NameFact(name="dtq:op:x", role=Role.HANDLERS, is_eternal=True))

    assert remedy(ours, using=USING) is not None
    assert remedy(theirs, using=USING) is None


def test_a_consumer_without_a_worker_is_believed_at_an_age() -> None:
    def consumer(idle: timedelta, *, is_known: bool = False) -> ConsumerFact:
        return ConsumerFact(queue=QUEUE, worker=WORKER, owns=0, idle=idle, is_known=is_known)

    (young,), (old,) = found(consumer(timedelta(seconds=30))), found(consumer(CONSUMER_AGE))
    assert (CONSUMER_AGE - timedelta(seconds=30), timedelta()) == (young.ripe_in, old.ripe_in)
    assert [] == kinds(consumer(CONSUMER_AGE, is_known=True))
    assert [] == kinds(replace(consumer(CONSUMER_AGE), owns=1))


def test_a_queue_is_registered_has_a_possible_name_and_all_groups_or_none() -> None:
    assert [] == kinds(QueueFact(name="mail", is_registered=True, groups=0, bands=10))
    assert [] == kinds(QueueFact(name="mail", is_registered=True, groups=10, bands=10))
    assert [Kind.GROUP] == kinds(QueueFact(name="mail", is_registered=True, groups=9, bands=10))
    assert [Kind.UNREGISTERED] == kinds(QueueFact(name="mail", is_registered=False, groups=9, bands=10))
    assert [Kind.BAD_NAME] == kinds(QueueFact(name="No Queue", is_registered=True))


@pytest.mark.parametrize(
    ("text", "is_found"),
    [("2", False), ("3", True), ("two", True), ("", True), ("9" * 40, True), ("02", True), ("2.0", True)],
)
def test_a_count_must_be_the_number_there_is(text: str, *, is_found: bool) -> None:
    assert ([Kind.COUNT] if is_found else []) == kinds(CountFact(queue=QueueName("mail"), text=text, counted=2))


def test_a_heartbeat_is_listed_readable_and_not_of_the_future() -> None:
    beat = replace(a_heartbeat(), last_heartbeat=NOW)
    future = replace(beat, last_heartbeat=NOW + timedelta(seconds=2))

    assert [] == kinds(HeartbeatFact(worker=WORKER, heartbeat=beat, is_known=True))
    assert [Kind.HEARTBEAT] == kinds(HeartbeatFact(worker=WORKER, heartbeat=beat, is_known=False))
    assert [Kind.CLOCKS] == kinds(HeartbeatFact(worker=WORKER, heartbeat=future, is_known=True))
    assert [Kind.UNREADABLE] == kinds(HeartbeatFact(worker=WorkerId("w"), heartbeat=None, is_known=True))


@pytest.mark.parametrize(("last_id", "is_found"), [("", False), ("5-0", False), (LAST_ENTRY_ID, True)])
def test_a_stream_that_has_given_its_last_id_is_for_a_person(last_id: str, *, is_found: bool) -> None:
    findings = found(NameFact(name="dtq:stream:audit", role=Role.BOUNDED, is_eternal=True, last_id=last_id))

    assert ([(Kind.EXHAUSTED, "dtq:stream:audit")] if is_found else []) == [(one.kind, one.subject) for one in findings]
    assert [None] * len(findings) == [remedy(one, using=USING) for one in findings]


def test_a_group_that_is_ahead_is_put_back_where_it_is() -> None:
    (finding,) = found(ReadingFact(QUEUE, (0, 5)))

    assert (Kind.AHEAD, QUEUE) == (finding.kind, finding.subject)
    assert "p0, p5" in finding.detail
    assert Rewind(QUEUE, (0, 5)) == remedy(finding, using=USING)
    assert [] == kinds(ReadingFact(QUEUE, ()))


def test_every_kind_has_its_words() -> None:
    assert list(Kind) == list(DIAGNOSES)


@pytest.mark.parametrize("task", [QUEUED, RUNNING])
def test_an_entry_without_the_payload_that_its_record_has_is_told_of(task: Task) -> None:
    (finding,) = found(replace(at_home(task), hollow=True))

    assert (Kind.HOLLOW_ENTRY, task.task_id) == (finding.kind, finding.subject)
    assert str(task.entry_id) in finding.detail


def test_a_payload_that_neither_record_nor_entry_has_is_to_be_set_again() -> None:
    (finding,) = found(replace(at_home(QUEUED), hollow=True, has_payload=False))

    assert (Kind.UNREADABLE, True) == (finding.kind, "submit it anew" in finding.detail)


def test_only_a_task_that_waits_gets_another_entry() -> None:
    waiting, running = (replace(at_home(task), hollow=True) for task in (QUEUED, RUNNING))

    change = remedy(found(waiting)[0], using=USING)

    assert isinstance(change, Change)
    assert (replace(QUEUED, entry_id=None, version=USING.token), ()) == (change.after, change.requires)
    assert remedy(found(running)[0], using=USING) is None
