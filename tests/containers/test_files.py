import json
import shlex

import pytest

from dtq.entrypoints import config
from dtq.entrypoints.api import GRACE
from tests.containers.files import DOCKERFILE, PROJECT, Service, compose, instructions, last, seconds, services, stages

IMAGES = ("api", "worker")
SERVICES = ("redis", "api", "worker")
OURS = ("api", "worker")


@pytest.fixture(params=SERVICES)
def service(request: pytest.FixtureRequest) -> Service:
    return services()[request.param]


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_as_nobody_in_particular(image: str) -> None:
    assert last(stages(DOCKERFILE)[image], "USER") == "10001:10001"


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("word", ["ENTRYPOINT", "CMD"])
def test_signals_reach_dtq_with_no_shell_between(image: str, word: str) -> None:
    parts = json.loads(last(stages(DOCKERFILE)[image], word))

    assert parts
    assert not {"sh", "bash", "/bin/sh", "-c"} & set(parts)


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_says_how_its_health_is_asked(image: str) -> None:
    _, _, command = last(stages(DOCKERFILE)[image], "HEALTHCHECK").partition(" CMD ")

    program, _, code = json.loads(command)

    assert program == "python"
    compile(code, image, "exec")
    assert "/health" in code


@pytest.mark.parametrize("image", IMAGES)
def test_what_is_built_with_is_left_behind(image: str) -> None:
    stage = stages(DOCKERFILE)[image]

    assert [rest for word, rest in stage if word == "COPY"] == ["--from=build /opt/dtq /opt/dtq"]
    assert not [rest for word, rest in stage if word in {"RUN", "ADD"}]


def test_the_base_is_the_callers_choice_and_nothing_else_is_pulled() -> None:
    found = list(instructions(DOCKERFILE))
    bases = [rest.split()[0] for word, rest in found if word == "FROM"]

    assert found[0] == ("ARG", "BASE=python:3.13-slim")
    assert set(bases) - set(stages(DOCKERFILE)) == {"${BASE}"}
    assert not DOCKERFILE.lower().replace(" ", "").startswith("#syntax=")


def test_only_what_the_image_is_made_of_is_sent_to_the_engine() -> None:
    lines = [line for line in (PROJECT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    copied = {
        name.removeprefix("./")
        for word, rest in stages(DOCKERFILE)["build"]
        if word == "COPY"
        for name in shlex.split(rest)[:-1]
    }

    assert lines[0] == "*"
    assert {line[1:] for line in lines if line[0] == "!"} == copied
    assert all((PROJECT / name).exists() for name in copied)


def test_no_service_can_write_or_rise(service: Service) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "pid", "network_mode"} & set(service)


def test_redis_forgets_nothing() -> None:
    redis = services()["redis"]
    command = redis["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))

    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"
    assert redis["volumes"] == ["redis-data:/data"]
    assert "redis-data" in compose({"DTQ_API_KEY": "a-key"})["volumes"]


def test_how_soon_redis_brings_a_task_to_the_disk_is_the_operators_choice() -> None:
    assert "everysec" in services(REDIS_APPENDFSYNC="everysec")["redis"]["command"]


def test_redis_is_reached_by_the_services_alone() -> None:
    networks = compose({"DTQ_API_KEY": "a-key"})["networks"]
    redis = services()["redis"]

    assert not {"ports", "expose"} & set(redis)
    assert redis["networks"] == ["broker"]
    assert networks["broker"] == {"internal": True}


def test_redis_does_not_run_as_root() -> None:
    assert services()["redis"]["user"] == "redis"


def test_a_published_port_is_open_to_this_host_alone() -> None:
    published = {name: found["ports"] for name, found in services(API_PORT="8080").items() if "ports" in found}

    assert published == {"api": ["127.0.0.1:8080:8000"]}


@pytest.mark.parametrize("name", OURS)
def test_dtq_waits_for_a_healthy_redis(name: str) -> None:
    assert services()[name]["depends_on"] == {"redis": {"condition": "service_healthy"}}
    assert services()["redis"]["healthcheck"]["test"] == ["CMD", "redis-cli", "ping"]


@pytest.mark.parametrize("name", OURS)
def test_every_setting_given_to_dtq_is_one(name: str) -> None:
    loaded = config.load(environment=services()[name]["environment"])

    assert loaded.warnings == ()
    assert loaded.settings.redis_url == "redis://redis:6379/0"


@pytest.mark.parametrize("name", OURS)
def test_the_task_modules_are_the_operators_choice(name: str) -> None:
    environment = services(DTQ_TASK_MODULES="my_tasks")[name]["environment"]

    assert config.load(environment=environment).settings.modules == ("my_tasks",)


def test_the_api_does_not_start_without_a_key() -> None:
    environment = services(DTQ_API_KEY="of the operator")["api"]["environment"]

    assert environment["DTQ_API_KEY"] == "of the operator"
    with pytest.raises(KeyError, match="DTQ_API_KEY"):
        compose({})


def test_the_key_is_in_no_file() -> None:
    assert "DTQ_API_KEY" not in DOCKERFILE
    assert "DTQ_API_KEY" not in services()["worker"]["environment"]


def test_a_worker_is_given_longer_than_it_takes_to_drain() -> None:
    worker = services()["worker"]
    settings = config.load(environment=worker["environment"]).settings

    assert seconds(worker["stop_grace_period"]) >= settings.drain_timeout_s + 10


def test_the_api_is_given_longer_than_its_open_requests() -> None:
    assert seconds(services()["api"]["stop_grace_period"]) >= GRACE.total_seconds() + 5


@pytest.mark.parametrize("name", OURS)
def test_a_service_runs_the_command_of_its_image(name: str) -> None:
    found = services()[name]

    assert found["build"]["target"] == name
    assert found["command"] == json.loads(last(stages(DOCKERFILE)[name], "CMD"))
