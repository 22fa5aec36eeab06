"""A task module that makes the clocks of its process wrong, before anything of dtq asks them."""

import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

from dtq.adapters import system

AHEAD_VARIABLE = "DTQTEST_CLOCK_AHEAD_S"
AHEAD_S = float(os.environ.get(AHEAD_VARIABLE, "0"))

_true_time = time.time


class WrongDatetime(datetime):
    """Datetimes whose *now* is wrong by so much."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(_true_time(), tz or UTC) + timedelta(seconds=AHEAD_S)


if AHEAD_S:
    time.time = lambda: _true_time() + AHEAD_S
    vars(system)["datetime"] = WrongDatetime
