"""The lines of ordinary steps, which are made in a way of their own, and read as all others."""

import io
import re
from datetime import timedelta

import pytest
from msgspec.structs import replace
from structlog.contextvars import bound_contextvars

from dtq.adapters.logs import LogObserver
from dtq.adapters.logs import brief as briefs
from dtq.adapters.logs import observer as observers
from dtq.adapters.logs.brief import brief
from dtq.domain.change import Change
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.outcome import Outcome
from dtq.domain.task import QueueName, WorkerId
from tests.factories import a_change, a_fault, a_lease, a_success, a_task, a_token, an_audit_entry

WORKER = WorkerId("worker-1")
LEASE = a_lease()
STAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def started(**changes: object) -> Change:
    task = a_task(version=a_token(), **changes)
    assert task.receipt is not None
    claim = Claim(worker=WORKER, lease=LEASE, receipt=task.receipt)
    change = start(task, claim=claim, now=task.created_at, token=a_token(), policy=FailurePolicy())
    assert isinstance(change, Change)
    return change


def finished(outcome: Outcome) -> Change:
    task = started().after
    now = task.created_at + timedelta(milliseconds=1500)
    policy = FailurePolicy()
    change = finish(task, lease=LEASE, outcome=outcome, now=now, token=a_token(), policy=policy, jitter=0.0)
    assert isinstance(change, Change)
    return change


CHANGES = {
    "started": started(),
    "succeeded": finished(a_success()),
    "to be retried": finished(a_fault()),
    "failed": finished(a_fault(retryable=False)),
    "submitted": a_change(),
    "audited": replace(started(), audit=an_audit_entry()),
    "without an event": replace(started(), event=None),
    "of a queue of a strange name": started(queue=QueueName('a="b')),
}


FORMS = ("json", "text")


def line_of(change: Change, *, form: str, worker_id: WorkerId | None = WORKER) -> str:
    stream = io.StringIO()
    observer = LogObserver(stream, service="worker", level="INFO", as_json=form == "json", worker_id=worker_id)
    observer.committed(change)
    line, stamps = STAMP.subn("now", stream.getvalue())
    assert stamps == 1
    return line


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("worker_id", [WORKER, None])
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_such_a_line_reads_as_the_processors_make_it(
    change: Change, form: str, worker_id: WorkerId | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = line_of(change, form=form, worker_id=worker_id)
    monkeypatch.setattr(observers, "brief", lambda **_: lambda changes: [None] * len(changes))
    assert line == line_of(change, form=form, worker_id=worker_id)


AROUND: dict[str, dict[str, object]] = {
    "a request": {"request_id": "a-request"},
    "a strange request": {"request_id": 'a="b"'},
    "a request of no text": {"request_id": 7},
    "a request of a name without an end": {"request_id": "x" * 3000},
    "something else": {"tenant": "a-tenant"},
    "a request and more": {"request_id": "a-request", "tenant": "a-tenant"},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("around", AROUND.values(), ids=list(AROUND))
@pytest.mark.parametrize("change", [CHANGES["submitted"], CHANGES["succeeded"]], ids=["submitted", "succeeded"])
def test_what_goes_on_around_it_is_in_the_line_as_the_processors_put_it(
    change: Change, around: dict[str, object], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bound_contextvars(**around):
        line = line_of(change, form=form, worker_id=None)
        monkeypatch.setattr(observers, "brief", lambda **_: lambda changes: [None] * len(changes))
        assert line == line_of(change, form=form, worker_id=None)
    assert all(name in line for name in around)


@pytest.mark.parametrize("form", FORMS)
def test_steps_as_they_should_be_have_lines_made_in_this_way(form: str) -> None:
    make = brief(service="worker", worker_id=WORKER, as_json=form == "json", warned_of=())
    assert None not in make([CHANGES["started"], CHANGES["succeeded"]])


@pytest.mark.parametrize("form", FORMS)
def test_a_submission_in_a_request_has_one_too(form: str) -> None:
    make = brief(service="api", worker_id=None, as_json=form == "json", warned_of=())
    with bound_contextvars(request_id="a-request"):
        assert None not in make([CHANGES["submitted"]])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [(678_901_999, "2026-01-02T03:04:05.678901Z"), (1_000, "2026-01-02T03:04:05.000001Z"), (999, None)],
)
def test_such_a_line_tells_its_time_to_the_microsecond_and_leaves_a_whole_second_to_the_processors(
    nanoseconds: int, shown: str | None, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(briefs, "time_ns", lambda: 1_767_323_045_000_000_000 + nanoseconds)
    make = brief(service="worker", worker_id=WORKER, as_json=form == "json", warned_of=())
    (line,) = make([CHANGES["started"]])

    assert shown is None if line is None else shown is not None and shown in line


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("names", [["started", "succeeded", "submitted"], [*CHANGES]], ids=["ordinary", "all"])
def test_changes_that_are_told_of_together_have_a_line_each_in_their_order(names: list[str], form: str) -> None:
    together, apart = io.StringIO(), io.StringIO()
    changes = [CHANGES[name] for name in names]
    for stream, groups in ((together, [changes]), (apart, [[change] for change in changes])):
        observer = LogObserver(stream, service="worker", level="INFO", as_json=form == "json", worker_id=WORKER)
        for group in groups:
            observer.committed(*group)

    lines = STAMP.sub("now", together.getvalue()).splitlines()
    assert STAMP.sub("now", apart.getvalue()).splitlines() == lines
    assert len(names) == len(lines)


@pytest.mark.parametrize("level", ["WARNING", "ERROR"])
def test_a_level_that_is_not_wanted_is_not_written(level: str) -> None:
    stream = io.StringIO()
    LogObserver(stream, service="worker", level=level, as_json=False, worker_id=WORKER).committed(CHANGES["started"])
    assert not stream.getvalue()
