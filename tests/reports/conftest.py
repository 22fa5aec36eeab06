"""The deployments of the judged tests, for what others have reported of their own queues."""

from tests.judged.systems import durable_system, own_system, pytest_runtest_makereport, system

__all__ = ["durable_system", "own_system", "pytest_runtest_makereport", "system"]
