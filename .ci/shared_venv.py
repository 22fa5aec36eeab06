"""Makes the virtualenv that all tox envs share match pyproject.toml: `python shared_venv.py FOLDER`."""

import fcntl
import hashlib
import json
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def fingerprint() -> str:
    """What the virtualenv depends on: the interpreter, where the project lies, and what it asks for."""
    wanted = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    parts = [sys.version, str(PROJECT), wanted["build-system"], wanted["project"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def build(folder: Path) -> None:
    """Make the virtualenv anew, with the pip of the running one: the system's Python may have none to give."""
    venv.create(folder, clear=True, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--editable", f"{PROJECT}[dev]"], check=True)


def main() -> None:
    """Build unless what stands there was built from the same fingerprint; one process at a time (tox -p)."""
    folder = Path(sys.argv[1])
    stamp = folder / "fingerprint"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == fingerprint():
            return
        build(folder)
        stamp.write_text(fingerprint())


if __name__ == "__main__":
    main()
