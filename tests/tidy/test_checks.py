"""Each check finds what is planted for it, and keeps quiet about what is allowed."""

from pathlib import Path
from textwrap import indent

import pytest

from tests.tidy import honesty, prose, rules, shape
from tests.tidy.source import Check

LONG_FUNCTION = "def f() -> None:\n" + "    pass\n" * 40
DECISION = (
    "# 1. We do this\n\nStatus: Accepted   Date: 2026-11-29\n\n## Context\nIt is.\n\n## Decision\nWe will do it.\n\n"
    "## Consequences\nGood.\n\n## Rejected\n- Not to.\n"
)
DECISION_LIST = "- [1. We do this](0001-we-do-this.md)\n"
TABLE = "| id | sentence | proof |\n|---|---|---|\n"
RUFF = "[tool.ruff.lint]\nignore = [\n"
PER_FILE = "[tool.ruff.lint.per-file-ignores]\n"

PLANTED: tuple[tuple[Check, str, str], ...] = (
    (shape.modules_are_short, "src/dtq/long.py", "x = 1\n" * 301),
    (shape.modules_are_short, "src/dtq/long.lua", "local x = 1\n" * 301),
    (shape.modules_are_short, "tests/test_long.py", "x = 1\n" * 301),
    (shape.functions_are_short, "src/dtq/long.py", LONG_FUNCTION),
    (shape.functions_are_short, "tests/test_long.py", "class C:\n" + indent(f"async {LONG_FUNCTION}", "    ")),
    (shape.names_say_something, "src/dtq/utils.py", ""),
    (shape.names_say_something, "src/dtq/a.py", "class TaskManager: ..."),
    (shape.names_say_something, "src/dtq/a.py", "def handle(): ..."),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "if status == 'running' then return end"),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "local Dead_Lettered = 1"),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "if attempt >= max_attempts then return end"),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "if 3 < task.attempt then return end"),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "if task['attempt'] == '3' then return end"),
    (rules.adapters_know_no_status, "src/dtq/adapters/a.py", "x = task.status is TaskStatus.RUNNING"),
    (rules.adapters_know_no_status, "src/dtq/adapters/a.py", "match s:\n    case TaskStatus.QUEUED:\n        pass"),
    (rules.adapters_know_no_status, "src/dtq/adapters/redis/a.py", "x = {'status': 'failed'}"),
    (rules.adapters_know_no_status, "src/dtq/adapters/a.py", "x = task.attempt >= 3"),
    (rules.adapters_know_no_status, "src/dtq/adapters/a.py", "x = 3 < attempt_number"),
    (rules.keys_are_spelled_once, "src/dtq/adapters/redis/broker.py", "x = 'dtq:tasks:recent'"),
    (rules.keys_are_spelled_once, "src/dtq/a.py", "x = f'dtq:task:{task_id}'"),
    (rules.keys_are_spelled_once, "src/dtq/a.lua", "redis.call('GET', 'dtq:lock:scheduler')"),
    (prose.decisions_have_their_form, "docs/adr/0001-we-do-this.md", DECISION.replace("## Rejected", "## Other")),
    (prose.decisions_have_their_form, "docs/adr/0001-we-do-this.md", DECISION.replace("Accepted", "Fine")),
    (prose.decisions_have_their_form, "docs/adr/0001-we-do-this.md", DECISION.replace("We will", "One might")),
    (prose.decisions_have_their_form, "docs/adr/0001-we-do-this.md", DECISION.replace("# 1.", "# 2.")),
    (prose.decisions_have_their_form, "docs/adr/0001-we-do-this.md", DECISION + "\n" * 60),
    (prose.decisions_have_their_form, "docs/adr/0002-we-skip-one.md", DECISION),
    (prose.decisions_have_their_form, "docs/adr/README.md", DECISION_LIST + "- [2. Gone](0002-gone.md)\n"),
    (prose.decisions_have_their_form, "docs/adr/README.md", "nothing is listed"),
    (prose.conformance_names_living_proof, "docs/contract-conformance.md", f"{TABLE}| 1 | so | not yet |\n"),
    (prose.conformance_names_living_proof, "docs/contract-conformance.md", f"{TABLE}| 1 | so | adr/0001, PENDING |\n"),
    (prose.conformance_names_living_proof, "docs/contract-conformance.md", f"{TABLE}| 1 | so | adr/0009 |\n"),
    (
        prose.conformance_names_living_proof,
        "docs/contract-conformance.md",
        f"{TABLE}| 1 | so | tests/gone.py::test_a |",
    ),
    (
        prose.conformance_names_living_proof,
        "docs/contract-conformance.md",
        f"{TABLE}| 1 | so | tests/test_a.py::test_b |",
    ),
    (
        prose.conformance_names_living_proof,
        "docs/contract-conformance.md",
        f"{TABLE}| 1 | so | tests/test_a.py::T::test_b |",
    ),
    (prose.conformance_names_living_proof, "docs/contract-conformance.md", "# no table\n"),
    (prose.documents_name_living_files, "README.md", "see `src/dtq/gone.py`.\n"),
    (prose.documents_name_living_files, "docs/a.md", "in (docs/adr/0002-gone.md), or tests/*/gone.py\n"),
    (prose.exceptions_carry_reasons, "src/dtq/a.py", "x = 1  # noqa: E501\n"),
    (prose.exceptions_carry_reasons, "src/dtq/a.py", "x = 1  # noqa\n"),
    (prose.exceptions_carry_reasons, "tests/a.py", "x = 1  # type: ignore[misc]\n"),
    (prose.exceptions_carry_reasons, "tests/a.py", "x = 1  # type: ignore  # it is so\n"),
    (prose.linter_exceptions_carry_reasons, "pyproject.toml", f'{RUFF}    "D100",\n]\n'),
    (prose.linter_exceptions_carry_reasons, "pyproject.toml", f'{PER_FILE}"src/a.py" = ["S311"]\n'),
    (prose.linter_exceptions_carry_reasons, "pyproject.toml", f'{PER_FILE}"tests/**" = [\n    "D",\n]\n'),
    (prose.nothing_is_left_behind, "src/dtq/a.py", "# TODO: later\n"),
    (prose.nothing_is_left_behind, "docs/a.md", "as DESIGN.md says\n"),
    (prose.nothing_is_left_behind, "README.md", "see ../shared for more\n"),
    (prose.nothing_is_left_behind, "tox.ini", "path = /work/main\n"),
    (honesty.no_test_is_skipped, "tests/a.py", "import pytest\n@pytest.mark.skipif(True)\ndef test_a(): ...\n"),
    (honesty.no_test_is_skipped, "tests/a.py", "import pytest\ndef test_a():\n    pytest.skip('no redis')\n"),
    (honesty.no_test_is_skipped, "tests/a.py", "import pytest\nredis = pytest.importorskip('redis')\n"),
)

ALLOWED: tuple[tuple[Check, str, str], ...] = (
    (shape.modules_are_short, "src/dtq/a.py", "x = 1\n" * 300),
    (shape.functions_are_short, "src/dtq/a.py", LONG_FUNCTION.removesuffix("    pass\n")),
    (shape.names_say_something, "src/dtq/a.py", "class Database: ...\ndef handled(): ..."),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "-- a running task\nredis.call('XPENDING', KEYS[1])"),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "--[[ what is pending\nand queued ]]\nreturn 1"),
    (rules.scripts_know_no_status, "src/dtq/a.lua", "local attempt = redis.call('HGET', KEYS[1], ARGV[1])"),
    (rules.adapters_know_no_status, "src/dtq/adapters/a.py", '"""running"""\nx = TaskStatus(text)'),
    (rules.adapters_know_no_status, "src/dtq/adapters/a.py", "x = reply['pending']  # tidy: XINFO's name for it"),
    (rules.adapters_know_no_status, "src/dtq/adapters/redis/keys.py", "x = 'cancelled'"),
    (rules.adapters_know_no_status, "src/dtq/domain/a.py", "x = TaskStatus.RUNNING"),
    (rules.keys_are_spelled_once, "src/dtq/adapters/redis/keys.py", "x = 'dtq:workers'"),
    (rules.keys_are_spelled_once, "src/dtq/a.py", '"""dtq:workers holds them"""\nx = "dtq: no such task"'),
    (prose.conformance_names_living_proof, "docs/contract-conformance.md", f"{TABLE}| 1 | so | adr/0001 |\n"),
    (
        prose.conformance_names_living_proof,
        "docs/contract-conformance.md",
        f"{TABLE}| 1 | so | `tests/test_a.py::test_a` |",
    ),
    (
        prose.conformance_names_living_proof,
        "docs/contract-conformance.md",
        f"{TABLE}| 1 | so | tests/test_a.py::T::test_m |",
    ),
    (
        prose.documents_name_living_files,
        "README.md",
        "docs/adr/NNNN-do.md, tests/*.py and [a](docs/adr/0001-we-do-this.md).\n",
    ),
    (prose.exceptions_carry_reasons, "src/dtq/a.py", "x = 1  # noqa: S311, TID251 - a demo draws lots\n"),
    (prose.exceptions_carry_reasons, "src/dtq/a.py", "x = 1  # type: ignore[misc]  # the library has no types\n"),
    (prose.linter_exceptions_carry_reasons, "pyproject.toml", f'{RUFF}    "D100",  # so it is\n]\nselect = ["ALL"]\n'),
    (
        prose.linter_exceptions_carry_reasons,
        "pyproject.toml",
        f'{PER_FILE}# both need it\n"a.py" = ["S3"]\n"b.py" = ["S3"]\n',
    ),
    (prose.nothing_is_left_behind, "STYLE.md", "no TODO without an issue\n"),
    (prose.nothing_is_left_behind, "docs/a.md", "the network and the shared state work/life\n"),
    (
        honesty.no_test_is_skipped,
        "tests/a.py",
        "import pytest\n@pytest.mark.parametrize('a', [1])\ndef test_a(a): ...\n",
    ),
)


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    plant(tmp_path, "docs/adr/0001-we-do-this.md", DECISION)
    plant(tmp_path, "docs/adr/README.md", DECISION_LIST)
    plant(tmp_path, "docs/contract-conformance.md", f"{TABLE}| 1 | so it is | adr/0001 |\n")
    plant(tmp_path, "pyproject.toml", "")
    plant(tmp_path, "tests/test_a.py", "def test_a(): ...\nclass T:\n    def test_m(self): ...\n")
    return tmp_path


def planted(cases: tuple[tuple[Check, str, str], ...]) -> list[str]:
    return [f"{check.__name__}-{number}" for number, (check, _, _) in enumerate(cases)]


@pytest.mark.parametrize(("check", "name", "text"), PLANTED, ids=planted(PLANTED))
def test_what_is_planted_is_found(project: Path, check: Check, name: str, text: str) -> None:
    before = check(project)
    plant(project, name, text)

    assert not before
    assert check(project)


@pytest.mark.parametrize(("check", "name", "text"), ALLOWED, ids=planted(ALLOWED))
def test_what_is_allowed_is_left_alone(project: Path, check: Check, name: str, text: str) -> None:
    plant(project, name, text)

    assert [] == check(project)


def test_a_finding_names_file_and_line(project: Path) -> None:
    plant(project, "src/dtq/a.py", "x = 1\ny = 2  # noqa: E501\n")

    assert ["src/dtq/a.py:2: an exception without its reason"] == prose.exceptions_carry_reasons(project)
