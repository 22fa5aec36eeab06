"""The folder `.dtq/`, by which commands find the `dtq dev` that was started in the same place."""

import fcntl
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

NAME: Final = ".dtq"
_FOREIGN_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_MAX_BYTES: Final = 65_536


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder says: DTQ_ names and texts, and what is wrong with it."""

    settings: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()


class FolderBusy(Exception):
    """Another process holds the lock."""


class Lock:
    """A lock on a file that ends with the last process that has it open, however that ends."""

    def __init__(self, path: Path) -> None:
        """Take the lock of *path*. Raises FolderBusy where another process has it."""
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self.descriptor)
            raise FolderBusy(str(path)) from error

    def close(self) -> None:
        """Let go of the lock in this process; a child that inherited it still has it."""
        os.close(self.descriptor)


def lock_path(folder: Path) -> Path:
    """Return the file that a running `dtq dev` holds the lock of."""
    return folder / "lock"


def write_settings(folder: Path, settings: Mapping[str, str]) -> None:
    """Leave *settings* in *folder* for other commands, readable by this user only."""
    new = folder / "settings.new"
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(settings)))
    new.replace(_settings_path(folder))


def remove_settings(folder: Path) -> None:
    """Take back what write_settings left."""
    _settings_path(folder).unlink(missing_ok=True)


def read_settings(folder: Path) -> Found:
    """Read what a running `dtq dev` left in *folder*; nothing counts that is stale or that others may have written."""
    path = _settings_path(folder)
    try:
        owner = path.stat()
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES)
    except OSError:
        return Found()
    if owner.st_uid != os.geteuid() or owner.st_mode & _FOREIGN_WRITE:
        return Found(warnings=(f"{path} is ignored: others than you may write it",))
    if not _is_locked(lock_path(folder)):
        return Found(warnings=(f"{path} is ignored: the `dtq dev` that wrote it does not run any more",))
    try:
        return Found(settings=msgspec.json.decode(text, type=dict[str, str]))
    except msgspec.DecodeError as error:
        return Found(warnings=(f"{path} is ignored: {error}",))


def _settings_path(folder: Path) -> Path:
    return folder / "settings.json"


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
