"""The folder `.dtq/`, by which commands find the `dtq dev` that was started in the same place."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

NAME: Final = ".dtq"
_FOREIGN_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_MAX_BYTES: Final = 65_536
_FILES: Final = (".gitignore", "lock", "server.lock", "server.log", "settings.json", "settings.new")


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder says: DTQ_ names and texts, and what is wrong with it."""

    settings: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()


class FolderUnusable(Exception):
    """Something stands in the folder that does not belong there; the message names it."""


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


def prepare(folder: Path) -> None:
    """Make *folder*, and see to it that each file in it can be written. Raises FolderUnusable."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for path in (folder, data_path(folder)):
            if path.exists() and path.stat().st_uid != os.geteuid():
                raise FolderUnusable(f"{path} belongs to another user, who could read tasks or plant some")
        for name in _FILES:
            path = folder / name
            if path.is_dir():
                raise FolderUnusable(f"{path} is a folder where a file belongs; move it away")
            if path.exists() and not os.access(path, os.R_OK | os.W_OK):
                raise FolderUnusable(f"{path} must be yours to read and write")
        data = data_path(folder)
        if data.exists() and not data.is_dir():
            raise FolderUnusable(f"{data} is a file where a folder belongs; move it away")
        if data.exists() and not os.access(data, os.R_OK | os.W_OK | os.X_OK):
            raise FolderUnusable(f"{data} must be yours to read and write")
        (folder / ".gitignore").write_text("*\n")
    except FileExistsError as error:
        raise FolderUnusable(f"{error.filename} is a file where a folder belongs; move it away") from error
    except OSError as error:
        raise FolderUnusable(f"{error.filename} cannot be used: {error.strerror}") from error


def data_path(folder: Path) -> Path:
    """Return where the server of `dtq dev` keeps its data."""
    return folder / "data"


def log_path(folder: Path) -> Path:
    """Return what the server of `dtq dev` writes about itself."""
    return folder / "server.log"


def server_lock_path(folder: Path) -> Path:
    """Return the file that the server of `dtq dev` holds the lock of as long as it lives."""
    return folder / "server.lock"


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
    """Take back what write_settings left, where that can be done."""
    # what cannot be removed counts for nothing, because nobody holds the lock any more
    with contextlib.suppress(OSError):
        _settings_path(folder).unlink(missing_ok=True)


def read_settings(folder: Path) -> Found:
    """Read what a running `dtq dev` left in *folder*; nothing counts that is stale or that others may have written."""
    path = _settings_path(folder)
    try:
        with _opened(folder, os.O_DIRECTORY) as within:
            if os.fstat(within).st_uid != os.geteuid():
                return Found(warnings=(f"{folder} is ignored: it belongs to another user",))
            # what is judged is what is read, whatever stands under that name a moment later
            with _opened(path.name, os.O_NOFOLLOW, within=within) as descriptor:
                found = os.fstat(descriptor)
                text = os.read(descriptor, _MAX_BYTES)
            is_locked = _is_locked(lock_path(folder).name, within=within)
    except (FileNotFoundError, NotADirectoryError):
        return Found()
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        return Found(warnings=(f"{path} is ignored: {why}",))
    if found.st_uid != os.geteuid() or found.st_mode & _FOREIGN_WRITE:
        return Found(warnings=(f"{path} is ignored: others than you may write it",))
    if not is_locked:
        return Found(warnings=(f"{path} is ignored: the `dtq dev` that wrote it does not run any more",))
    try:
        return Found(settings=msgspec.json.decode(text, type=dict[str, str]))
    except msgspec.DecodeError as error:
        return Found(warnings=(f"{path} is ignored: {error}",))


def _settings_path(folder: Path) -> Path:
    return folder / "settings.json"


@contextlib.contextmanager
def _opened(path: str | Path, how: int, *, within: int | None = None) -> Iterator[int]:
    # a pipe that nobody writes to would be waited for
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | how, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_locked(name: str, *, within: int) -> bool:
    try:
        with _opened(name, os.O_NOFOLLOW, within=within) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
