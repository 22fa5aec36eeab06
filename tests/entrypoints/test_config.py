import pytest
from msgspec.structs import fields

from dtq.application.admitting import MAX_SUBMISSIONS
from dtq.application.creating import MAX_WAITING_BYTES, RECORD_BYTES
from dtq.entrypoints.config import Settings, SettingsError, allowed, load, variable

BATCH = 48 * 1024 * 1024

CONTRACT = {
    "DTQ_REDIS_URL": "redis://localhost:6379/0",
    "DTQ_API_HOST": "0.0.0.0",  # noqa: S104 - what the contract says, bound by nobody here
    "DTQ_API_PORT": 8000,
    "DTQ_WS_PATH": "/ws/events",
    "DTQ_WORKER_CONCURRENCY": 4,
    "DTQ_WORKER_ID": "",
    "DTQ_VISIBILITY_TIMEOUT_S": 30,
    "DTQ_HEARTBEAT_INTERVAL_S": 5,
    "DTQ_MAX_QUEUE_DEPTH": 10000,
    "DTQ_MAX_PAYLOAD_BYTES": 262144,
    "DTQ_TASK_TIMEOUT_MS": 30000,
    "DTQ_MAX_ATTEMPTS": 10,
    "DTQ_RETRY_BASE_DELAY": 1.0,
    "DTQ_RETRY_MAX_DELAY": 60.0,
    "DTQ_RETRY_JITTER": 0.2,
    "DTQ_TASK_RETENTION_S": 604800,
    "DTQ_RESULT_RETENTION_S": 3600,
    "DTQ_RESULT_MAX_BYTES": 8192,
    "DTQ_IDEM_TTL_S": 86400,
    "DTQ_DRAIN_TIMEOUT_S": 30,
    "DTQ_DLQ_ENABLED": True,
    "DTQ_DLQ_MAXLEN": 10000,
    "DTQ_API_KEY": "",
    "DTQ_LOG_LEVEL": "INFO",
    "DTQ_LOG_JSON": False,
}
ADDED = {
    "DTQ_KEY_PREFIX": "dtq",
    "DTQ_TASK_MODULES": "",
    "DTQ_WORKER_QUEUE": "default",
    "DTQ_WORKER_METRICS_PORT": 0,
    "DTQ_MAX_SCHEDULED": 100_000,
    "DTQ_MAX_QUEUES": 1000,
    "DTQ_MAX_BATCH_BYTES": 16_777_216,
    "DTQ_WS_BUFFER": 1000,
    "DTQ_WS_ALLOWED_ORIGINS": "",
    "DTQ_WS_MAX_CLIENTS": 1000,
    "DTQ_REDIS_SERVER_BIN": "",
}


def test_every_setting_has_the_contracts_name_and_default() -> None:
    settings = load(environment={}).settings

    actual = {variable(name): getattr(settings, name) for name in Settings.__struct_fields__}

    assert {**CONTRACT, **ADDED} == actual


def test_all_faults_are_reported_at_once_with_name_value_and_what_is_allowed() -> None:
    environment = {
        "DTQ_API_PORT": "70000",
        "DTQ_RETRY_JITTER": "nan",
        "DTQ_DLQ_ENABLED": "maybe",
        "DTQ_LOG_LEVEL": "LOUD",
        "DTQ_WORKER_QUEUE": "Default\n",
        "DTQ_HEARTBEAT_INTERVAL_S": "20",
    }

    with pytest.raises(SettingsError) as refused:
        load(environment=environment)

    faults = "\n".join(refused.value.faults)
    assert 6 == len(refused.value.faults)
    assert "DTQ_API_PORT='70000': must be an integer within 0..65535" in faults
    assert "DTQ_RETRY_JITTER='nan': must be a number within 0..1" in faults
    assert "DTQ_DLQ_ENABLED='maybe': must be true, false, 1, 0, yes or no" in faults
    assert "DTQ_LOG_LEVEL='LOUD': must be one of" in faults
    assert r"DTQ_WORKER_QUEUE='Default\n': must be the name of a queue" in faults
    assert "DTQ_VISIBILITY_TIMEOUT_S=30: must be at least twice DTQ_HEARTBEAT_INTERVAL_S (40)" in faults


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DTQ_REDIS_URL", "http://localhost"),
        ("DTQ_VISIBILITY_TIMEOUT_S", "0.5"),
        ("DTQ_MAX_ATTEMPTS", "101"),
        ("DTQ_MAX_ATTEMPTS", "0"),
        ("DTQ_TASK_TIMEOUT_MS", "3600001"),
        ("DTQ_RETRY_JITTER", "1.01"),
        ("DTQ_RETRY_BASE_DELAY", "0"),
        ("DTQ_WORKER_ID", "worker 1"),
        ("DTQ_WORKER_ID", "w" * 65),
        ("DTQ_WS_PATH", "ws"),
        ("DTQ_TASK_MODULES", "good,not-good"),
        ("DTQ_KEY_PREFIX", "a b"),
        ("DTQ_KEY_PREFIX", "{a}{b}"),
        ("DTQ_WORKER_CONCURRENCY", "four"),
        ("DTQ_API_KEY", " padded"),
        ("DTQ_API_HOST", "a..b"),
        ("DTQ_API_HOST", "x" * 64),
        ("DTQ_API_HOST", "a b"),
        ("DTQ_API_HOST", "a\udcffb"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(environment={name: text})

    assert [True] == [fault.startswith(f"{name}=") for fault in refused.value.faults]


@pytest.mark.parametrize(
    "environment",
    [
        {"DTQ_HEARTBEAT_INTERVAL_S": "15.1"},
        {"DTQ_RETRY_BASE_DELAY": "61"},
        {"DTQ_IDEM_TTL_S": "604801"},
        {"DTQ_RESULT_RETENTION_S": "604801"},
    ],
)
def test_settings_that_contradict_each_other_are_refused(environment: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="must be at least"):
        load(environment=environment)


def test_the_largest_batch_may_wait_for_the_broker_as_a_whole() -> None:
    largest = load(environment={"DTQ_MAX_BATCH_BYTES": str(BATCH)}).settings.max_batch_bytes

    assert largest + MAX_SUBMISSIONS * RECORD_BYTES <= MAX_WAITING_BYTES
    with pytest.raises(SettingsError, match="DTQ_MAX_BATCH_BYTES"):
        load(environment={"DTQ_MAX_BATCH_BYTES": str(BATCH + 1)})


@pytest.mark.parametrize("host", ["::", "fe80::1%eth0", "127.0.0.1", "localhost.", "a_service", "m\u00fcnchen.example"])
def test_names_and_addresses_can_be_listened_at(host: str) -> None:
    assert host == load(environment={"DTQ_API_HOST": host}).settings.api_host


def test_an_empty_text_means_the_default() -> None:
    settings = load(environment={"DTQ_API_PORT": "", "DTQ_REDIS_URL": "", "DTQ_LOG_JSON": ""}).settings

    assert Settings() == settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", True), ("1", True), ("Yes", True), ("FALSE", False), ("0", False), ("no", False)],
)
def test_booleans_are_words_or_digits(text: str, *, expected: bool) -> None:
    assert expected is load(environment={"DTQ_LOG_JSON": text}).settings.log_json


def test_fractions_of_seconds_are_accepted() -> None:
    environment = {"DTQ_VISIBILITY_TIMEOUT_S": "1.5", "DTQ_HEARTBEAT_INTERVAL_S": "0.25"}

    settings = load(environment=environment).settings

    assert (1.5, 0.25) == (settings.visibility_timeout_s, settings.heartbeat_interval_s)


def test_the_command_line_wins_over_the_environment_and_that_over_the_folder() -> None:
    options = {"DTQ_WORKER_QUEUE": "first"}
    environment = {"DTQ_WORKER_QUEUE": "second", "DTQ_KEY_PREFIX": "second"}
    folder = {"DTQ_WORKER_QUEUE": "third", "DTQ_KEY_PREFIX": "third", "DTQ_TASK_MODULES": "third"}

    settings = load(options=options, environment=environment, folder=folder).settings

    assert ("first", "second", "third") == (settings.worker_queue, settings.key_prefix, settings.task_modules)


def test_an_unknown_name_is_a_warning() -> None:
    loaded = load(environment={"DTQ_REDIS_ULR": "x", "DTQ_TEST_SERVER": "memory", "OTHER": "x"})

    assert ("DTQ_REDIS_ULR is no setting of dtq and is ignored",) == loaded.warnings


def test_task_modules_are_names_between_commas_each_once() -> None:
    assert ("a.b", "c") == load(environment={"DTQ_TASK_MODULES": " a.b, c,a.b,,"}).settings.modules


def test_no_secret_is_shown() -> None:
    environment = {"DTQ_API_KEY": "hidden-key", "DTQ_REDIS_URL": "redis://user:hidden-word@host:6379/0"}

    shown = repr(load(environment=environment).settings)

    assert "hidden" not in shown
    assert "redis://user:***@host:6379/0" in shown


def test_no_secret_is_shown_in_a_fault() -> None:
    environment = {
        "DTQ_API_KEY": "hidden-key\x07",
        "DTQ_REDIS_URL": "rediss://:hidden-word@host:99999/0?password=hidden-too",
    }

    with pytest.raises(SettingsError) as refused:
        load(environment=environment)

    assert 2 == len(refused.value.faults)
    assert "hidden" not in str(refused.value)


def test_every_setting_can_be_explained() -> None:
    assert all(allowed(field) for field in fields(Settings))
