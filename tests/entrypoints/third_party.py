"""What a third party's package looks like: an adapter of its own, announced by an entry point.

Each URL names one backend in this process, so that several commands of one test share it.
"""

from pathlib import Path

from dtq.entrypoints.container import connect as connect_own
from dtq.ports.backend import Backend, BackendOptions

_made: dict[str, Backend] = {}


def connect(url: str, *, options: BackendOptions) -> Backend:
    """Return the backend of *url*, made when it is first named."""
    if url not in _made:
        _made[url] = connect_own("memory://", options=options)
    return _made[url]


def install(folder: Path) -> None:
    """Put the metadata of an installed package into *folder*, which must be on the path."""
    metadata = folder / "third_party-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[dtq.brokers]\nthird = tests.entrypoints.third_party:connect\n")
