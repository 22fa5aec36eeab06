import os
from pathlib import Path
from stat import ST_INO, ST_UID

import pytest

from dtq.entrypoints.folder import (
    FolderBusy,
    FolderUnusable,
    Lock,
    lock_path,
    prepare,
    read_settings,
    remove_settings,
    write_settings,
)

GIVEN = {"DTQ_REDIS_URL": "redis://127.0.0.1:1234/0"}


def test_settings_are_found_while_their_writer_holds_the_lock(tmp_path: Path) -> None:
    lock = Lock(lock_path(tmp_path))
    write_settings(tmp_path, GIVEN)

    found = read_settings(tmp_path)

    assert (GIVEN, ()) == (found.settings, found.warnings)
    lock.close()


def test_settings_of_a_writer_that_died_are_ignored_aloud(tmp_path: Path) -> None:
    Lock(lock_path(tmp_path)).close()
    write_settings(tmp_path, GIVEN)

    found = read_settings(tmp_path)

    assert {} == found.settings
    assert "does not run any more" in found.warnings[0]


def test_settings_that_others_may_write_are_ignored_aloud(tmp_path: Path) -> None:
    lock = Lock(lock_path(tmp_path))
    write_settings(tmp_path, GIVEN)
    (tmp_path / "settings.json").chmod(0o666)

    found = read_settings(tmp_path)

    assert {} == found.settings
    assert "others than you may write it" in found.warnings[0]
    lock.close()


@pytest.mark.parametrize("name", ["", "settings.json"])
def test_settings_of_another_user_are_ignored_aloud(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock(lock_path(tmp_path))
    write_settings(tmp_path, GIVEN)
    strange, fstat = (tmp_path / name).stat(), os.fstat

    def of_another(descriptor: int) -> os.stat_result:
        values = [*fstat(descriptor)]
        values[ST_UID] += values[ST_INO] == strange.st_ino
        return os.stat_result(values)

    monkeypatch.setattr("os.fstat", of_another)

    found = read_settings(tmp_path)

    assert {} == found.settings
    assert [f"{tmp_path / name} is ignored"] == [warning.partition(":")[0] for warning in found.warnings]
    lock.close()


def test_settings_that_are_a_link_are_ignored_aloud(tmp_path: Path) -> None:
    lock = Lock(lock_path(tmp_path))
    write_settings(tmp_path, GIVEN)
    path = tmp_path / "settings.json"
    path.symlink_to(path.rename(tmp_path / "elsewhere.json"))

    found = read_settings(tmp_path)

    assert {} == found.settings
    assert (f"{path} is ignored: it is a link",) == found.warnings
    lock.close()


def test_what_is_judged_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock(lock_path(tmp_path))
    write_settings(tmp_path, GIVEN)
    path, fstat = tmp_path / "settings.json", os.fstat
    before = path.stat().st_ino

    def then_exchanged(descriptor: int) -> os.stat_result:
        judged = fstat(descriptor)
        if judged.st_ino == before:
            write_settings(tmp_path, {"DTQ_REDIS_URL": "redis://planted"})
            path.chmod(0o666)
        return judged

    monkeypatch.setattr("os.fstat", then_exchanged)

    assert GIVEN == read_settings(tmp_path).settings
    assert before != path.stat().st_ino
    lock.close()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.json", 0o600)

    assert {} == read_settings(tmp_path).settings


def test_settings_that_are_no_settings_are_ignored_aloud(tmp_path: Path) -> None:
    lock = Lock(lock_path(tmp_path))
    write_settings(tmp_path, GIVEN)
    (tmp_path / "settings.json").write_text("[1]")

    found = read_settings(tmp_path)

    assert {} == found.settings
    assert "is ignored" in found.warnings[0]
    lock.close()


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    lock = Lock(lock_path(tmp_path))
    write_settings(tmp_path, GIVEN)
    remove_settings(tmp_path)

    found = read_settings(tmp_path)

    assert ({}, ()) == (found.settings, found.warnings)
    lock.close()


def test_settings_that_cannot_be_read_are_ignored_aloud(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()

    found = read_settings(tmp_path)

    assert {} == found.settings
    assert "settings.json is ignored: Is a directory" in found.warnings[0]


@pytest.mark.parametrize("name", [".gitignore", "lock", "server.lock", "server.log", "settings.json", "settings.new"])
def test_a_folder_where_a_file_belongs_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(FolderUnusable, match=f"/{name} is a folder where a file belongs"):
        prepare(tmp_path)


@pytest.mark.parametrize("name", ["", "data"])
def test_a_file_where_a_folder_belongs_is_named(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "here"
    if name:
        folder.mkdir()
    (folder / name).touch()

    with pytest.raises(FolderUnusable, match="is a file where a folder belongs"):
        prepare(folder)


@pytest.mark.parametrize("name", ["lock", "server.lock", "server.log", "settings.json", "data"])
def test_what_one_may_not_write_is_named(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    (tmp_path / name).mkdir() if name == "data" else (tmp_path / name).touch()
    # not by its mode: who runs this test may be allowed everything
    monkeypatch.setattr("os.access", lambda path, _: Path(path).name != name)

    with pytest.raises(FolderUnusable, match=f"/{name} must be yours"):
        prepare(tmp_path)


@pytest.mark.parametrize("name", ["", "data"])
def test_a_folder_of_another_user_is_not_used(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".dtq"
    (folder / "data").mkdir(parents=True)
    found = Path.stat

    def stat(path: Path, **how: bool) -> os.stat_result:
        values = [*found(path, **how)]
        values[ST_UID] += path == folder / name
        return os.stat_result(values)

    monkeypatch.setattr(Path, "stat", stat)

    with pytest.raises(FolderUnusable, match="belongs to another user"):
        prepare(folder)


def test_a_place_where_no_folder_can_be_made_is_named() -> None:
    with pytest.raises(FolderUnusable, match="/proc/dtq cannot be used"):
        prepare(Path("/proc/dtq"))


def test_what_cannot_be_removed_stays_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "settings.json").mkdir()

    remove_settings(tmp_path)

    assert (tmp_path / "settings.json").is_dir()


def test_settings_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    write_settings(tmp_path, GIVEN)

    assert 0o600 == (tmp_path / "settings.json").stat().st_mode & 0o777


def test_what_a_writer_that_was_killed_left_half_written_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "settings.new").write_text("half of")

    write_settings(tmp_path, GIVEN)

    lock = Lock(lock_path(tmp_path))
    assert GIVEN == read_settings(tmp_path).settings
    lock.close()


def test_a_second_lock_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    first = Lock(lock_path(tmp_path))

    with pytest.raises(FolderBusy):
        Lock(lock_path(tmp_path))

    first.close()
    Lock(lock_path(tmp_path)).close()
