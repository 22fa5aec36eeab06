"""What nobody promises to stand: all is forgotten, the last second is lost, a replica takes over."""

import shutil
from typing import Final

from tests.chaos.aof import FOLDER, cut_last_second
from tests.chaos.deployment import Deployment, follow
from tests.chaos.strike import Acts, Strike, nothing

REPLICA_WITHIN_S: Final = 30.0


class Calamities:
    """Strikes what is stored."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def acts(self) -> Acts:
        """How each kind of fault begins and ends."""
        return {
            "flush_all": (self._forget_all, nothing),
            "power_loss": (self._kill, self._restart_without_the_end),
            "restart_empty": (self._kill, self._restart_empty),
            "promote_replica": (self._promote, nothing),
        }

    def _forget_all(self, _: Strike) -> None:
        self._deployment.system.redis.flushall()

    def _kill(self, _: Strike) -> None:
        self._deployment.server.kill()

    def _restart_without_the_end(self, _: Strike) -> None:
        """What the server wrote in its last second did not reach the disk, as everysec allows."""
        cut_last_second(self._deployment.data)
        self._deployment.server.restart()

    def _restart_empty(self, _: Strike) -> None:
        """As if there had been no persistence; what was written is kept for the history alone."""
        deployment = self._deployment
        kept = deployment.next_era()
        shutil.move(deployment.data / FOLDER, kept / FOLDER)
        deployment.eras.insert(-1, kept)
        deployment.server.restart()

    def _promote(self, _: Strike) -> None:
        """The master dies, and a replica becomes one with what it has heard."""
        deployment = self._deployment
        data = deployment.next_era()
        replica = deployment.start(data)
        follow(replica, deployment.server, within=REPLICA_WITHIN_S)
        deployment.server.kill()
        deployment.take_over(replica, data=data)
