"""The console script under the import path of the contract."""

from dtq.entrypoints.cli import main

__all__ = ["main"]
