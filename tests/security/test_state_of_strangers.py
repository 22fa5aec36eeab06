"""Check 12: traffic that is refused leaves no key, and no traffic of strangers makes series without end.

At random, in numbers, for keys: tests/judged/test_hostile_requests.py; for series:
tests/integration/test_metrics_of_strangers.py. Labels one by one: tests/adapters/test_prometheus_labels.py.
"""

import json
from pathlib import Path

from tests.judged.waiting import wait_until
from tests.scraped import Scraped
from tests.security.site import JSON, WITHIN_S, Site

NUMBER = 300


def refused(number: int) -> list[str]:
    """Bodies that are refused, each with names that nobody has used before."""
    fresh = {"idempotency_key": f"key-{number}", "queue": f"queue-{number}"}
    return [
        json.dumps({"task_type": f"type-{number}", "payload": {}, **fresh}),
        json.dumps({"task_type": "echo", "payload": [number], **fresh}),
        json.dumps({"task_type": "echo", "payload": {}, f"field-{number}": 1, **fresh}),
        json.dumps({"task_type": "echo", "payload": {}, "priority": number + 10, **fresh}),
        json.dumps({"task_type": "echo", "payload": {}, "metadata": {"discarded": number}, **fresh}),
    ]


def test_refused_submissions_leave_no_key_and_no_series(alone: Site) -> None:
    http = alone.api.http
    alone.post(refused(0)[0])
    for body in refused(0):
        alone.post(body)
    before, series = alone.lasting_keys(), Scraped(http.get("/metrics").text).series

    for number in range(1, NUMBER):
        items = ", ".join(refused(number))
        answer = http.post("/api/v1/tasks/batch", content=f'{{"tasks": [{items}]}}', headers=JSON)
        assert 5 == answer.json()["refused"]

    assert before >= alone.lasting_keys()
    shown = Scraped(http.get("/metrics").text)
    assert series >= shown.series
    assert 5 * NUMBER <= sum(shown.of("dtq_ingest_rejected_total").values())


def test_fresh_paths_methods_and_headers_leave_no_key_and_no_series(alone: Site) -> None:
    http = alone.api.http
    before, series = alone.lasting_keys(), Scraped(http.get("/metrics").text).series

    for number in range(NUMBER):
        http.get(f"/path-{number}")
        http.request(f"METHOD{number}", "/api/v1/tasks")
        http.get(f"/api/v1/queues/queue-{number}", headers={f"X-Header-{number}": "1", "X-Request-ID": f"r-{number}"})
        http.get(f"/api/v1/tasks?filter-{number}=1")

    assert before >= alone.lasting_keys()
    assert series >= Scraped(http.get("/metrics").text).series


def test_workers_that_come_and_go_leave_no_series_and_no_key(alone: Site) -> None:
    first = alone.system.worker()
    named = first.worker_id
    assert named in alone.api.http.get("/api/v1/workers").text
    first.kill()
    second = alone.system.worker()
    second.terminate()
    second.exit_code(within=WITHIN_S)

    redis, keys = alone.system.redis, alone.system.keys
    wait_until(lambda: {alone.worker.worker_id} == redis.smembers(keys.workers), within=WITHIN_S, what="one is left")
    heartbeats = [keys.worker(worker.worker_id) for worker in (first, second)]
    wait_until(lambda: not redis.exists(*heartbeats), within=WITHIN_S, what="their heartbeats are gone")
    text = alone.api.http.get("/metrics").text
    assert [] == [worker.worker_id for worker in (first, second) if worker.worker_id in text]


def test_a_folder_of_the_worker_holds_nothing_of_a_stranger(alone: Site) -> None:
    folder: Path = alone.system.folder

    alone.run("echo", json.dumps({"path": "../../stranger", "name": "stranger"}))

    assert [] == [path for path in folder.rglob("*") if "stranger" in path.name]
