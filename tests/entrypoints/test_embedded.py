import socket
import stat
from pathlib import Path

import pytest

from dtq.entrypoints.embedded import LOOPBACK, NoServer, command_line, find_program, free_port


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
