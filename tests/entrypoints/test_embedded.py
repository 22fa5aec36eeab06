import socket
import stat
from pathlib import Path

import pytest

from dtq.entrypoints.embedded import LOOPBACK, NoServer, command_line, find_program, free_port, why_ended


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_named_program_wins(tmp_path: Path) -> None:
    named = program(tmp_path, "my-server")

    assert named == find_program(str(named))


def test_a_named_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NoServer, match="DTQ_REDIS_SERVER_BIN"):
        find_program(str(tmp_path / "nothing"))


def test_the_wheels_program_is_found() -> None:
    assert "valkey-server" == find_program("").name


def test_without_the_wheel_a_program_on_the_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtq.entrypoints.embedded.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = program(tmp_path, "redis-server")

    assert found == find_program("")


def test_without_any_program_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtq.entrypoints.embedded.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoServer, match=r"pip install 'dtq\[embedded\]'"):
        find_program("")


def test_the_server_listens_on_loopback_and_keeps_an_append_only_file(tmp_path: Path) -> None:
    command = command_line(Path("server"), port=1234, data=tmp_path)

    assert ["--bind", LOOPBACK] == command[1:3]
    assert "--appendonly yes" in " ".join(command)
    assert str(tmp_path) in command


def test_a_port_that_is_taken_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]

        found = free_port(port)

    assert port < found < port + 100


def test_no_free_port_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(NoServer, match=f"no port from {port}"):
            free_port(port, tries=1)


def test_why_a_server_ended_is_the_last_that_it_wrote(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("1:M starts\n1:M # Configured to not listen anywhere, exiting.\n\n")

    reason = why_ended(Path("valkey-server"), log=log, data=tmp_path)

    assert f"it says in {log}: 1:M # Configured to not listen anywhere, exiting" == reason


@pytest.mark.parametrize(("text", "expected"), [("", "it says nothing in"), (None, "cannot be read")])
def test_a_server_that_wrote_nothing_is_told_so(tmp_path: Path, text: str | None, expected: str) -> None:
    log = tmp_path / "server.log"
    if text is not None:
        log.write_text(text)

    assert expected in why_ended(Path("valkey-server"), log=log, data=tmp_path)


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("1:M # Bad file format reading the append only file a.1.incr.aof: make a backup", "a.1.incr.aof"),
        ("1:M # Can't open or create append-only dir appendonlydir: Not a directory", "appendonly.aof.manifest"),
        ("1:M # The AOF manifest file contains too long line", "appendonly.aof.manifest"),
    ],
)
def test_damaged_data_come_with_what_helps(tmp_path: Path, line: str, file: str) -> None:
    log, data = tmp_path / "server.log", tmp_path / "a folder"
    log.write_text(f"{line}\n")
    damaged = f"'{data}/appendonlydir/{file}'"

    plain = why_ended(tmp_path / "my-server", log=log, data=data)
    (tmp_path / "my-check-aof").touch()
    beside = why_ended(tmp_path / "my-server", log=log, data=data)

    assert f"""bash -c 'exec -a "$0" "$@"' my-check-aof {tmp_path}/my-server --fix {damaged}""" in plain
    assert f"{tmp_path}/my-check-aof --fix {damaged}" in beside
    assert f"rm -r '{data}'" in plain
