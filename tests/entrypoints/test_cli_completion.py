"""What shells are told of the commands."""

import subprocess
from pathlib import Path

import pytest

from dtq.entrypoints.cli import main
from dtq.entrypoints.cli.completion import SHELLS
from tests.entrypoints.cli_tree import arguments_of, commands

ASK = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
$(complete -p dtq | sed -E 's/.*-F ([^ ]+).*/\\1/') dtq "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_known_to_every_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["completion", shell])

    script = capsys.readouterr().out
    options = {
        option for one in commands().values() for action in arguments_of(one) for option in action.option_strings
    }
    # fish says `-l name`, the others `--name`
    known = {name for name in options if name in script or f"-l {name.removeprefix('--')}" in script}
    assert options == known
    assert [] == [word for name in commands() for word in name.split() if word not in script]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["dtq", "ret"], {"retry-dlq"}),
        (["dtq", "queue", ""], {"pause", "resume", "stats"}),
        (["dtq", "dlq", "l"], {"list"}),
        (["dtq", "submit", "--pri"], {"--priority"}),
        (["dtq", "retry-dlq", "--"], {"--help", "--json", "--wait"}),
        (["dtq", "completion", ""], {"bash", "zsh", "fish"}),
        (["dtq", "list", "--status", "re"], {"retrying"}),
        (["dtq", "watch", "--type", "TASK_CANCEL"], {"TASK_CANCELLED", "TASK_CANCEL_REQUESTED"}),
    ],
)
def test_bash_completes(
    words: list[str], expected: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["completion", "bash"])
    script = tmp_path / "dtq.bash"
    script.write_text(capsys.readouterr().out)

    done = subprocess.run(
        ["/usr/bin/env", "bash", "--norc", "-c", ASK, "bash", script, *words],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )

    assert expected == {word for word in done.stdout.split() if word.startswith(words[-1])}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_names_the_file_that_its_help_names(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", shell])
    head = [line for line in capsys.readouterr().out.splitlines()[:12] if line.startswith("#")]
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    told = next(line for line in capsys.readouterr().out.splitlines() if f"completion {shell} >" in line)

    [here] = [line for line in head if f"completion {shell} >" in line]
    assert told.split() == here.removeprefix("#").split()
    assert not any("Copy this" in line or "bash_completion/" in line for line in head)
