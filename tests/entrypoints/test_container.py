import sys
from pathlib import Path

import pytest
from dependency_injector import providers
from redis import exceptions

from dtq.application.beat_runner import LoopBeat
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.task import WorkerId
from dtq.entrypoints.broker_url import OWN_SCHEMES
from dtq.entrypoints.config import SettingsError, load
from dtq.entrypoints.container import (
    UnknownScheme,
    build,
    connect,
    known_own_schemes,
    retryable_errors,
    worker_id_of,
)
from dtq.entrypoints.part_options import backend_options
from dtq.handlers import Registry
from dtq.ports.backend import BackendOptions
from tests.entrypoints import third_party


async def test_the_memory_adapter_can_take_the_place_of_any_other() -> None:
    settings = load(environment={"DTQ_REDIS_URL": "redis://nowhere.invalid:1/0"}).settings
    container = build(settings, registry=Registry(), service="test")
    backend = connect("memory://", options=backend_options(settings))

    with container.backend.override(providers.Object(backend)):
        assert [] == list((await container.tasks().recent(queue=None, status=None, limit=1)).tasks)


async def test_a_third_partys_adapter_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    third_party.install(tmp_path)
    settings = load(environment={"DTQ_REDIS_URL": "third://found"}).settings

    backend = build(settings, registry=Registry(), service="test").backend()

    assert third_party.connect("third://found", options=BackendOptions()) is backend


def test_a_scheme_without_an_adapter_is_refused() -> None:
    with pytest.raises(SettingsError, match="scheme is one of redis, rediss, memory"):
        load(environment={"DTQ_REDIS_URL": "third://missing"})
    with pytest.raises(UnknownScheme, match="'third'"):
        connect("third://missing", options=BackendOptions())


def test_the_schemes_that_settings_allow_have_adapters() -> None:
    assert set(OWN_SCHEMES) == set(known_own_schemes())


def test_lost_connections_to_redis_are_retryable() -> None:
    assert {BrokerUnavailable, exceptions.ConnectionError, exceptions.TimeoutError} == set(retryable_errors())


def test_each_part_is_made_once() -> None:
    container = build(load(environment={"DTQ_REDIS_URL": "memory://"}).settings, registry=Registry(), service="test")

    assert container.backend() is container.backend()
    assert container.tasks() is container.tasks()


def test_a_backend_of_one_loop_beats_on_that_loop() -> None:
    container = build(load(environment={"DTQ_REDIS_URL": "memory://"}).settings, registry=Registry(), service="test")

    assert isinstance(container.beat(), LoopBeat)


def test_a_worker_has_the_id_that_was_set_or_a_new_one() -> None:
    named = worker_id_of(load(environment={"DTQ_WORKER_ID": "mine"}).settings)
    first, second = (worker_id_of(load(environment={}).settings) for _ in range(2))

    assert WorkerId("mine") == named
    assert first != second
    assert first.startswith("worker-")
