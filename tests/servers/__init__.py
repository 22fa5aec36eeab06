"""Real servers for tests: found on this machine, started, killed, paused and started again."""

from tests.servers.choice import NoServerError, adapters_under_test, start_chosen, start_own
from tests.servers.kinds import Kind
from tests.servers.server import RedisServer

__all__ = ["Kind", "NoServerError", "RedisServer", "adapters_under_test", "start_chosen", "start_own"]
