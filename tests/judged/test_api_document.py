"""Judged: the API does what its OpenAPI document says, whatever it is sent; Schemathesis says so, all checks on."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judged.sizes import FULL
from tests.judged.system import ROOT, Api, System
from tests.servers import RedisServer

KEY = "s3cret-key"
ROOMY = {
    "DTQ_TASK_MODULES": "dtq.demo",
    "DTQ_MAX_QUEUES": "100000",
    "DTQ_MAX_QUEUE_DEPTH": "1000000",
    "DTQ_MAX_SCHEDULED": "1000000",
}
"""No limit on waiting work is to end the run: what is refused then is another test's matter."""

CASES = 5_000 if FULL else 300
EXAMPLES = 250 if FULL else 5
"""How many cases each operation gets in the phase that draws them; the others have their own number."""

PHASES = "examples,coverage,fuzzing,stateful" if FULL else "examples,coverage,fuzzing"
SCHEMATHESIS = str(Path(sys.executable).with_name("st"))
GENERATED = re.compile(r"(\d+) generated")

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def deployment(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with System(redis_server, folder=tmp_path_factory.mktemp("document"), settings=ROOMY) as system:
        system.worker()
        yield system


@pytest.fixture(scope="module")
def open_api(deployment: System) -> Api:
    return deployment.api()


@pytest.fixture(scope="module")
def guarded_api(deployment: System) -> Api:
    return deployment.api({"DTQ_API_KEY": KEY})


def hold_against_document(api: Api, *, folder: Path, headers: tuple[str, ...] = ()) -> None:
    """Run Schemathesis as a stranger would, with the configuration that is in the project."""
    done = subprocess.run(
        [
            *(SCHEMATHESIS, "--config-file", str(ROOT / "schemathesis.toml")),
            *("run", f"{api.http.base_url}/docs/openapi.json", "--checks", "all", "--phases", PHASES, "--no-color"),
            *("--max-examples", str(EXAMPLES), "--continue-on-failure"),
            *(part for header in headers for part in ("--header", header)),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    report = done.stdout + done.stderr
    assert 0 == done.returncode, report
    found = GENERATED.search(report)
    assert found is not None, report
    assert CASES <= int(found[1]), report
    assert api.alive()
    assert "request_failed" not in api.log


def test_an_open_api_is_as_documented(open_api: Api, tmp_path: Path) -> None:
    hold_against_document(open_api, folder=tmp_path)


def test_a_guarded_api_is_as_documented_to_who_has_the_key(guarded_api: Api, tmp_path: Path) -> None:
    hold_against_document(guarded_api, folder=tmp_path, headers=(f"X-API-Key: {KEY}",))


def test_a_guarded_api_is_as_documented_to_who_has_none(guarded_api: Api, tmp_path: Path) -> None:
    hold_against_document(guarded_api, folder=tmp_path)
