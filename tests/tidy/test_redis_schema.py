"""docs/redis-schema.md names every key and field that the code writes, and no other."""

import re
from pathlib import Path

from dtq.adapters.redis.codec import PAYLOAD, SNAPSHOT
from dtq.adapters.redis.keys import BANDS, MAX_AUDIT, MAX_RECENT, Keyspace
from dtq.adapters.redis.wire import audit_fields, heartbeat_fields
from dtq.domain.entry import dead_letter_fields, entry_fields
from dtq.domain.task import QueueName, TaskId, WorkerId
from tests.factories import NOW, a_failure, a_heartbeat, a_task, an_audit_entry
from tests.tidy.tables import rows

PAGE = (Path(__file__).resolve().parents[2] / "docs/redis-schema.md").read_text()
QUEUE, TASK, WORKER = QueueName("<queue>"), TaskId("<task_id>"), WorkerId("<worker_id>")
KEPT_BY_THE_BROKER = {PAYLOAD, "tokens"}


def keys_of_the_code() -> set[str]:
    keys = Keyspace("dtq")
    names = {value for name, value in vars(keys).items() if name not in {"prefix", "task_prefix"}}
    made = {
        keys.task(TASK),
        keys.result(TASK),
        keys.idempotency(QUEUE, "<key>"),
        keys.paused(QUEUE),
        keys.worker(WORKER),
        keys.worker_channel(WORKER),
        keys.queue_channel(QUEUE),
    }
    assert f"dtq:stream:<queue>:p{BANDS[0]}" == keys.stream(QUEUE, 9)
    return names | made | {"dtq:stream:<queue>:p<0-9>"}


def test_every_key_is_there() -> None:
    assert keys_of_the_code() == set(rows(PAGE, "## Keys"))


def test_every_key_has_a_type_a_writer_and_a_bound() -> None:
    types = {"stream", "sorted set", "hash", "string", "set", "channel"}

    assert [] == [key for key, (kind, *rest) in rows(PAGE, "## Keys").items() if kind not in types or not all(rest)]


def test_what_the_page_says_expires_is_what_has_no_other_bound() -> None:
    keys = Keyspace("dtq")
    table = {key: cells for key, cells in rows(PAGE, "## Keys").items() if cells[0] != "channel"}

    expire = {key for key, cells in table.items() if cells[3].startswith("expires")}

    bounded = {key for key in table if keys.bound_of(re.sub(r"<0-9>", "5", key).replace("<queue>", "mail"))}
    assert set(table) - bounded == expire


def test_the_trims_are_those_of_the_code() -> None:
    table = rows(PAGE, "## Keys")

    assert (f"about {MAX_AUDIT}", str(MAX_RECENT)) == (table["dtq:stream:audit"][3], table["dtq:tasks:recent"][3])


def test_every_field_of_an_entry_is_there() -> None:
    assert {*entry_fields(a_task()), PAYLOAD} == set(rows(PAGE, "### Entries of task streams"))


def test_every_field_of_a_dead_letter_is_there() -> None:
    entry = set(rows(PAGE, "### Entries of task streams"))
    given_up = a_task(failure=a_failure(), finished_at=NOW)

    assert set(dead_letter_fields(given_up)) - entry == set(rows(PAGE, "### Dead letters"))


def test_every_field_of_a_task_is_there() -> None:
    shown = set(rows(PAGE, "### Entries of task streams")) | set(rows(PAGE, "### Tasks"))

    assert set(SNAPSHOT) | KEPT_BY_THE_BROKER == shown


def test_every_field_of_a_worker_is_there() -> None:
    assert list(heartbeat_fields(a_heartbeat())) == list(rows(PAGE, "### Workers"))


def test_every_field_of_an_audit_entry_is_there() -> None:
    assert set(audit_fields(an_audit_entry(subject="p5 1-0"))) == set(rows(PAGE, "### Audit entries"))
