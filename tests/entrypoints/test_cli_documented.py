"""The help of each command and docs/cli.md say what the parser does, and nothing else."""

import re
import shlex
from argparse import Action
from pathlib import Path

import pytest

from dtq.application.settings import ExitCode
from dtq.entrypoints.cli import main, parser
from dtq.entrypoints.cli.exits import EXIT_OF, HELP, Exit
from tests.entrypoints.cli_tree import arguments_of, commands, parsers

PAGE = (Path(__file__).resolve().parents[2] / "docs/cli.md").read_text()
SECTIONS = dict(re.findall(r"^### `(.+?)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = commands()
EXAMPLE = re.compile(r"^  (?:eval \"\$\()?(dtq [^|>\n]*?)(?:\)\"|\s*[|>].*)?$", re.MULTILINE)
PAGE_EXAMPLE = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def shown(action: Action) -> str:
    """An argument as the page names it."""
    value = str(action.metavar or action.dest)
    if not action.option_strings:
        return f"[{value}]" if action.nargs == "?" else value
    name = action.option_strings[-1]
    if action.nargs == 0:
        return name
    return f"{name} [{value}]" if action.nargs == "?" else f"{name} {value}"


def examples(name: str) -> list[str]:
    """The commands that a help text shows."""
    return EXAMPLE.findall((COMMANDS[name].epilog or "").partition("example")[2])


def test_the_page_has_every_command_and_no_other() -> None:
    assert list(COMMANDS) == list(SECTIONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_every_argument_and_what_help_says_of_it(name: str) -> None:
    rows = re.findall(r"^\| `(.+?)` \| (.*) \|$", SECTIONS[name], re.MULTILINE)

    assert [(shown(action), action.help) for action in arguments_of(COMMANDS[name])] == rows
    assert (COMMANDS[name].description or "") in SECTIONS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_and_page_show_the_same_examples(name: str) -> None:
    epilog = COMMANDS[name].epilog or ""
    lines = [line.strip() for line in re.split(r"examples?:\n", epilog)[-1].splitlines()]

    [block] = PAGE_EXAMPLE.findall(SECTIONS[name])

    assert lines == block.splitlines()
    assert lines


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_understood(name: str) -> None:
    found = examples(name)

    assert found
    for example in found:
        words = shlex.split(example)
        assert example.startswith(name)
        assert parser().parse_args(words[1:]).run


def test_commands_that_the_page_tells_of_are_understood() -> None:
    blocks = PAGE_EXAMPLE.findall(PAGE.partition("\n## Commands\n")[0])
    told = [line for block in blocks for line in block.splitlines() if line.startswith("dtq ")]

    assert len(told) > 5
    assert all(parser().parse_args(shlex.split(line)[1:]).run for line in told)


def test_the_commands_of_the_first_help_are_understood() -> None:
    told = re.findall(r"^  (dtq .+?)(?:   .*)?$", parser().epilog or "", re.MULTILINE)

    assert len(told) > 5
    assert all(parser().parse_args(shlex.split(line)[1:]).run for line in told)


@pytest.mark.parametrize("name", parsers())
def test_every_help_can_be_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*name.split()[1:], "--help"])

    out = capsys.readouterr().out
    assert 0 == ended.value.code
    assert f"usage: {name} " in out
    assert all(len(line) <= 120 for line in out.splitlines())


def test_every_argument_has_a_help() -> None:
    without = [f"{name} {shown(one)}" for name in COMMANDS for one in arguments_of(COMMANDS[name]) if not one.help]

    assert [] == without


def test_every_exit_code_is_in_help_and_page() -> None:
    codes = {int(code) for code in (*Exit, *ExitCode)}
    in_page = re.findall(r"^\| (\d+) \|", PAGE.partition("\n## Exit codes\n")[2].partition("\n## ")[0], re.MULTILINE)

    assert sorted(codes) == sorted(int(code) for code in in_page)
    assert codes == {int(code) for code in re.findall(r"(?:^|  )(\d+) [a-z-]", HELP)}
    assert set(EXIT_OF.values()) <= codes
