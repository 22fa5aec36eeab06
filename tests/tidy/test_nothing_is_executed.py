"""Nothing that comes from a client or from Redis is ever executed: the few places that could are known by name."""

import ast
from pathlib import Path

from tests.tidy.source import trees

PROJECT = Path(__file__).resolve().parents[2]

BUILT_IN = frozenset({"__import__", "compile", "eval", "exec"})
CALLS = frozenset(
    {"dlopen", "execv", "execve", "import_module", "load_module", "popen", "run_module", "spawnv", "system"}
)

ALLOWED = {
    "src/dtq/entrypoints/modules.py": {"importlib.import_module"},
    "src/dtq/entrypoints/children.py": {"subprocess.Popen", "asyncio.create_subprocess_exec", "ctypes.CDLL"},
    "src/dtq/entrypoints/container.py": {"point.load"},
    "src/dtq/entrypoints/http/stream_memory.py": {"ctypes.CDLL"},
}
"""Where an operator's own names are run: task modules, the parts of `dtq dev`, an installed package's adapter.

Beside them the C library is asked for what Python does not offer: to end with the parent, to give free memory back.
"""


def executes(tree: ast.Module) -> set[str]:
    """Each call in a module that can run what it is given."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {func.id for func in calls if isinstance(func, ast.Name) and func.id in BUILT_IN}
    dotted = {ast.unparse(func) for func in calls if isinstance(func, ast.Attribute)}
    return names | {name for name in dotted if _runs(name)}


def _runs(dotted: str) -> bool:
    owner, _, name = dotted.rpartition(".")
    if owner in {"pickle", "marshal", "runpy", "shelve", "code", "subprocess", "ctypes"}:
        return True
    return name in CALLS or name.startswith("create_subprocess") or (owner, name) == ("point", "load")


def test_only_what_an_operator_names_is_executed() -> None:
    found = {
        path.relative_to(PROJECT).as_posix(): calls
        for path, tree in trees(PROJECT, under="src")
        if (calls := executes(tree))
    }

    assert ALLOWED == found


def test_no_process_is_started_through_a_shell() -> None:
    shells = [
        f"{path.name}:{node.lineno}"
        for path, tree in trees(PROJECT, under="src")
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "shell"
    ]

    assert [] == shells


def test_what_executes_is_noticed() -> None:
    planted = "eval(x)\nimportlib.import_module(x)\nos.system(x)\nsubprocess.run(x)\npickle.loads(x)\nre.compile(x)\n"

    assert {"eval", "importlib.import_module", "os.system", "subprocess.run", "pickle.loads"} == executes(
        ast.parse(planted)
    )
