"""The fixtures of judged tests stand in systems.py."""

from tests.judged.systems import durable_system, own_system, pytest_runtest_makereport, system

__all__ = ["durable_system", "own_system", "pytest_runtest_makereport", "system"]
