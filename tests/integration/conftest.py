"""The deployments of the judged tests, for what is tried beside them."""

from tests.judged.systems import own_system, pytest_runtest_makereport, system

__all__ = ["own_system", "pytest_runtest_makereport", "system"]
