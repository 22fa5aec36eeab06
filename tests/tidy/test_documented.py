"""What the contract wants documented stands in the documents, in these words; guarantees and limits name their test."""

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"

SENTENCES = {
    "priority is strict": ("delivery-guarantees.md", "Priority is strict."),
    "the order of acknowledgement": ("delivery-guarantees.md", "nothing is acknowledged that was not recorded"),
    "the windows of failure": ("delivery-guarantees.md", "## Crash windows"),
    "side effects may repeat": ("delivery-guarantees.md", "run again: side effects may repeat"),
    "handlers must be idempotent": ("delivery-guarantees.md", "handlers must be idempotent"),
    "duplicates are absorbed attempts": ("delivery-guarantees.md", "it is never a new logical task"),
    "no exactly-once": ("delivery-guarantees.md", "Arbitrary side effects cannot be made to happen exactly once"),
    "heartbeat below visibility": ("delivery-guarantees.md", "Keep two heartbeats below the visibility timeout"),
    "timeouts below visibility": ("delivery-guarantees.md", "Timeouts below the visibility timeout"),
    "threads share the GIL": ("delivery-guarantees.md", "Sync handlers run in threads and share the GIL"),
    "the names of the keys": ("redis-schema.md", "## Keys"),
    "open without a key": ("api.md", "everything is open: that is meant for one's own machine"),
    "what is exact and what approximate": ("api.md", "## Figures, exact and approximate"),
    "the header wins": ("api.md", "(the header wins)"),
    "open without a key, in the settings": ("configuration.md", "Without an API key"),
    "strict priority starves": ("delivery-guarantees.md", "a steady flow of urgent work starves the rest"),
    "the depth is exact": ("backpressure.md", "Exact, where the contract allows approximate."),
    "prefetch is bounded": ("backpressure.md", "never exceeds `DTQ_WORKER_CONCURRENCY`"),
    "retry pressure": ("backpressure.md", "in batches of 100"),
    "the dead letters are bounded": ("backpressure.md", "About `DTQ_DLQ_MAXLEN` (10000) are kept."),
    "slow clients": ("backpressure.md", "a new event that ends no task is dropped"),
    "exact and approximate limits": ("backpressure.md", "## Exact and approximate"),
    "a lifetime or a bound for each key": ("redis-schema.md", "each key has a lifetime or a trim"),
    "no key means no guard": ("configuration.md", "empty: nothing is guarded"),
}


@pytest.mark.parametrize("what", SENTENCES)
def test_what_the_contract_wants_documented_is(what: str) -> None:
    page, sentence = SENTENCES[what]

    assert sentence in " ".join((DOCS / page).read_text().split())


GUARANTEE = re.compile(r"\b((?:tests/[\w/]+|[ACJR])/\w+\.py)::(\w+)")
FOLDERS = {"A": "tests/application", "C": "tests/contract", "J": "tests/judged", "R": "tests/reports"}


LEAST = {"delivery-guarantees.md": 30, "backpressure.md": 25, "reports.md": 100}


@pytest.mark.parametrize(("page", "least"), LEAST.items())
def test_each_guarantee_names_a_test_that_lives(page: str, least: int) -> None:
    named = set(GUARANTEE.findall((DOCS / page).read_text()))

    assert len(named) >= least
    assert [] == [f"{module}::{name}" for module, name in sorted(named) if name not in names_in(module)]


def names_in(module: str) -> set[str]:
    """The names of the functions in a module; a letter stands for its folder."""
    folder, _, rest = module.partition("/")
    path = DOCS.parent / FOLDERS.get(folder, folder) / rest
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, functions)}


NAMED = re.compile(r"`(?:src/dtq/)?((?:[\w.]+/)*[\w.-]+\.(?:ini|lua|md|py|toml|txt|yaml)|(?:[a-z]+/)+)`")
SYMBOL = re.compile(r"`(\w+)` in `([\w/]+\.py)`")
ROOTS = ("src/dtq", "src/dtq/entrypoints", "src/dtq/adapters/redis/lua", "tests/tidy", ".")


def found(name: str) -> list[Path]:
    """The files that a name in the architecture means."""
    return [path for root in ROOTS if (path := DOCS.parent / root / name).exists()]


def the_map() -> str:
    return (DOCS.parent / "ARCHITECTURE.md").read_text().partition("## Where to change what")[2].partition("\n## ")[0]


def test_each_place_that_the_architecture_sends_to_is_there() -> None:
    named = set(NAMED.findall(the_map()))

    assert len(named) > 150
    assert [] == sorted(name for name in named if not found(name))


def test_each_name_that_the_architecture_sends_to_is_there() -> None:
    named = set(SYMBOL.findall(the_map()))

    assert len(named) > 15
    assert [] == sorted(
        f"{symbol} in {name}"
        for symbol, name in named
        if not any(re.search(rf"\b{symbol}\b", path.read_text()) for path in found(name))
    )
