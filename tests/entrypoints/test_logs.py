import io
import json
import logging
from datetime import UTC, datetime, timedelta

from dtq.adapters.logs import FIELDS, LogHandler, LogObserver
from dtq.domain.admission import AdmissionRules, admit
from dtq.domain.audit import Actor
from dtq.domain.change import Change
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.events import EventType, pause_event, worker_event
from dtq.domain.lifecycle import cancel, submit
from dtq.domain.outcome import classify
from dtq.domain.task import EntryId, LeaseToken, QueueName, Receipt, Task, TaskId, Version, WorkerId

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TASK_ID = TaskId("0" * 32)
WORKER = WorkerId("worker-00000001")


def created() -> Change:
    fields = {"task_type": "greet", "payload": '{"word": "payload-text"}'}
    spec = admit(fields, rules=AdmissionRules(task_types={"greet"}))
    return submit(spec, task_id=TASK_ID, now=NOW, token=Version("t1"))


def failed() -> Change:
    queued = created().after
    task = Task(**{**{name: getattr(queued, name) for name in queued.__struct_fields__}, "entry_id": EntryId("1-0")})
    receipt = Receipt(task.queue, task.priority, EntryId("1-0"))
    claim = Claim(worker=WORKER, lease=LeaseToken("lease-token"), receipt=receipt)
    policy = FailurePolicy()
    started = start(task, claim=claim, now=NOW, token=Version("t2"), policy=policy)
    assert isinstance(started, Change)
    ended = finish(
        started.after,
        lease=claim.lease,
        outcome=classify(ValueError("payload-text"), retryable=()),
        now=NOW + timedelta(milliseconds=250),
        token=Version("t3"),
        policy=policy,
        jitter=0.0,
    )
    assert isinstance(ended, Change)
    return ended


def observer(stream: io.StringIO, *, level: str = "INFO", as_json: bool = True) -> LogObserver:
    return LogObserver(stream, service="worker", level=level, as_json=as_json)


def test_a_change_is_one_json_line_with_the_contracts_fields() -> None:
    stream = io.StringIO()

    observer(stream).committed(failed())

    [line] = stream.getvalue().splitlines()
    fields = json.loads(line)
    assert set(FIELDS) <= set(fields)
    assert (
        "warning",
        "worker",
        WORKER,
        TASK_ID,
        "greet",
        "default",
        1,
        "dead_lettered",
        250,
        "TASK_DEAD_LETTERED",
    ) == (*(fields[name] for name in FIELDS if name != "timestamp"),)
    assert "ValueError" == fields["error_class"]


def test_neither_payload_nor_lease_is_logged() -> None:
    for as_json in (True, False):
        stream = io.StringIO()

        for change in (created(), failed()):
            observer(stream, as_json=as_json).committed(change)

        assert "payload-text" not in stream.getvalue()
        assert "lease-token" not in stream.getvalue()


def test_an_audited_change_names_actor_and_request() -> None:
    stream = io.StringIO()
    change = cancel(created().after, now=NOW, token=Version("t9"), by=Actor(name="cli:ada@host", request_id="r-1"))
    assert isinstance(change, Change)

    observer(stream).committed(change)

    fields = json.loads(stream.getvalue())
    assert ("task.cancel", "cli:ada@host", "r-1") == (fields["action"], fields["actor"], fields["request_id"])


def test_control_characters_never_reach_the_stream() -> None:
    for as_json in (True, False):
        stream = io.StringIO()

        observer(stream, as_json=as_json).noticed("fault\n\x1b[31m", reason="a\r\nb\u2028c\x85d\x00", more="\ud800")

        [line] = stream.getvalue().splitlines()
        assert line.isprintable()


def test_what_is_no_task_has_null_for_its_fields() -> None:
    stream = io.StringIO()
    event = worker_event(EventType.WORKER_STALE, event_id="e", at=NOW, worker=WORKER, queue=QueueName("default"))

    observer(stream).happened(event)

    fields = json.loads(stream.getvalue())
    assert ("WORKER_STALE", None, WORKER) == (fields["event_type"], fields["task_id"], fields["worker_id"])


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()

    observer(stream, level="ERROR").committed(failed())

    assert "" == stream.getvalue()


def test_a_closed_stream_does_not_raise() -> None:
    stream = io.StringIO()
    log = observer(stream)
    stream.close()

    log.noticed("nobody reads this")


def test_numbers_that_json_lacks_become_text() -> None:
    stream = io.StringIO()

    observer(stream).noticed("odd", value=float("nan"))

    assert "nan" == json.loads(stream.getvalue())["value"]


def test_what_libraries_log_has_the_same_form() -> None:
    stream = io.StringIO()
    handler = LogHandler(observer(stream))
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "x.py", 1, "bad %s", ("\nthing",), None)

    handler.emit(record)

    fields = json.loads(stream.getvalue())
    assert ("error", "bad  thing", "uvicorn.error") == (fields["level"], fields["event"], fields["logger"])


def test_an_event_that_repeats_its_queue_is_logged_once() -> None:
    stream = io.StringIO()
    event = pause_event(QueueName("mail"), event_id="e1", at=NOW, paused=True)

    observer(stream).happened(event)

    line = json.loads(stream.getvalue())
    assert ("CONFIGURATION_CHANGED", "mail", True) == (line["event_type"], line["queue"], line["paused"])
