"""The deployments of the judged tests, for what is tried beside them."""

from tests.judged.systems import pytest_runtest_makereport, system

__all__ = ["pytest_runtest_makereport", "system"]
