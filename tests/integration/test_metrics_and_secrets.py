"""What must stay secret is planted everywhere and looked for in every log, metric, error and probe of processes."""

import re
from collections.abc import Iterator

import pytest

from tests.integration.test_metrics import Metered
from tests.judged.program import Program
from tests.judged.system import System
from tests.judged.waiting import wait_until
from tests.servers.process import LOOPBACK

PAYLOAD = "canary-payload-5d1c"
METADATA = "canary-metadata-77ab"
IDEMPOTENCY = "canary-idempotency-31f0"
API_KEY = "canary-key-90ee"
WRONG_KEY = "canary-wrong-key-44ba"
PASSWORD = "canary-password-c21d"
USER = "canary-user-1b9f"
HANDLERS = {"DTQ_TASK_MODULES": "tests.integration.leaky_handlers", "DTQ_LOG_LEVEL": "DEBUG"}
WITHIN_S = 20.0


def found_in(text: str) -> set[str]:
    return set(re.findall(r"canary-[a-z-]+", text))


def with_password(system: System, password: str = PASSWORD, user: str = "") -> str:
    return system.server.url.replace("redis://", f"redis://{user}:{password}@")


@pytest.mark.parametrize("as_json", ["true", "false"])
def test_no_payload_and_no_key_is_told_however_handlers_fail(system: System, as_json: str) -> None:
    settings = {**HANDLERS, "DTQ_LOG_JSON": as_json, "DTQ_API_KEY": API_KEY, "DTQ_DLQ_ENABLED": "false"}
    metered, api = Metered(system, settings), system.api(settings)
    texts = []
    for task_type in ("leak.async", "leak.sync"):
        fields = {"task_type": task_type, "payload": {"secret": PAYLOAD}, "metadata": {"note": METADATA}}
        body = {**fields, "idempotency_key": f"{IDEMPOTENCY}-{task_type}"}
        task_id = api.http.post("/api/v1/tasks", json=body).json()["task_id"]
        system.ended(task_id)
        cancel = f"/api/v1/tasks/{task_id}/cancel"
        texts += [api.http.post(cancel, headers={"X-API-Key": key}).text for key in (WRONG_KEY, API_KEY)]
        texts.append(api.http.post("/api/v1/tasks", json=body | {"task_type": "nobody"}).text)
        texts.append(api.http.post("/api/v1/tasks", json=body | {"priority": PAYLOAD}).text)
    texts += [api.http.get(path).text for path in ("/metrics", "/ready", "/health", "/docs/openapi.json")]
    texts += [metered.get(path).text for path in ("/metrics", "/health")]

    assert set() == found_in("".join(texts))
    assert "ValueError" in metered.worker.log
    assert "thread_crashed" in metered.worker.log
    assert set() == found_in(metered.worker.log + api.log)
    assert "Traceback" not in metered.worker.log


@pytest.fixture
def guarded(own_system: System) -> Iterator[System]:
    """A deployment whose Redis wants a password."""
    own_system.redis.config_set("requirepass", PASSWORD)
    yield own_system
    own_system.redis.execute_command("AUTH", PASSWORD)
    own_system.redis.config_set("requirepass", "")


@pytest.mark.parametrize("as_json", ["true", "false"])
@pytest.mark.parametrize("password", [PASSWORD, f"{PASSWORD}-wrong"], ids=["right", "wrong"])
def test_no_password_of_the_broker_is_told(guarded: System, password: str, as_json: str) -> None:
    url = with_password(guarded, password, user=USER if password != PASSWORD else "")
    settings = {**HANDLERS, "DTQ_LOG_JSON": as_json, "DTQ_REDIS_URL": url}
    api = guarded.api(settings, ready=False)
    worker = guarded.worker(settings, ready=False)
    wait_until(lambda: api.answers("/health"), within=WITHIN_S, what="the API lives")
    is_right = password == PASSWORD
    wait_until(lambda: api.answers("/ready") is is_right, within=WITHIN_S, what="the API knows its broker")
    word = "WORKER_STARTED" if is_right else "start_delayed"
    wait_until(lambda: word in worker.log, within=WITHIN_S, what=word)

    paths = ("/metrics", "/ready", "/api/v1/tasks", "/api/v1/queues", "/docs/openapi.json")
    texts = [api.http.get(path).text for path in paths]
    texts.append(api.http.post("/api/v1/tasks", json={"task_type": "say", "payload": {}}).text)

    assert set() == found_in("".join(texts) + worker.log + api.log)


def test_no_password_of_a_broker_that_is_not_there_is_told(system: System) -> None:
    settings = {**HANDLERS, "DTQ_REDIS_URL": f"redis://{USER}:{PASSWORD}@{LOOPBACK}:1/0"}
    api, worker = system.api(settings, ready=False), system.worker(settings, ready=False)
    wait_until(lambda: api.answers("/health"), within=WITHIN_S, what="the API lives")
    wait_until(lambda: "start_delayed" in worker.log, within=WITHIN_S, what="the worker waits")

    texts = [api.http.get(path).text for path in ("/ready", "/metrics", "/api/v1/queues")]
    done = system.command("get", "0" * 32, settings=settings)

    assert 1 == done.returncode
    assert set() == found_in("".join(texts) + worker.log + api.log + done.stdout + done.stderr)


@pytest.mark.parametrize(
    "url",
    [
        "redis://ann:{}@host:port/0",
        "redis://:{}/x@host:6379/0",
        "redis://:{}#x@host:6379/0",
        "redis://:x/{}@host:6379/0",
        "redis:ann:{}@host:6379/0",
        "rediss://ann:{}@/0",
        "http://ann:{}@host/0",
        "redis://host:port/0?password={}",
    ],
)
def test_no_password_of_a_setting_that_is_wrong_is_told(system: System, url: str) -> None:
    settings = {"DTQ_REDIS_URL": url.format(PASSWORD), "DTQ_API_KEY": f" {API_KEY}"}
    for arguments in (["worker", "run"], ["api", "run"], ["get", "0" * 32]):
        program = Program(arguments[0], arguments, environment=system.environment(settings), folder=system.folder)
        system.programs.append(program)
        assert 2 == program.exit_code(within=WITHIN_S)
        assert "DTQ_REDIS_URL" in program.log
        assert set() == found_in(program.log)
