"""One run: a plan is carried out on a deployment, which then heals and comes to rest; what was seen is its history."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from dtq.domain.admission import DEFAULT_QUEUE
from tests.chaos.deployment import CONCURRENCY, RETRY, VISIBILITY_S, Deployment
from tests.chaos.load import Load
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import Plan
from tests.chaos.reading import executions_of, followed, notices_of, told_of
from tests.chaos.remains import keys_of, remains_of
from tests.chaos.scrape import Scrape, Scraper
from tests.chaos.strike import Strike
from tests.chaos.watch import Watcher
from tests.simulation.history import History, Step, Terms

CLAIM_S: Final = 60.0
RECOVERY_S: Final = 3 * VISIBILITY_S + CLAIM_S + 45.0
"""Within which time after the last fault all must have ended: lost twice, on loan, delayed, retried, and run."""

WATCHED_S: Final = 7.0
"""How long watchers listen on, so that what was sent last has come."""


class Outcome(Struct, kw_only=True):
    """What came of one run."""

    plan: Plan
    history: History
    strikes: list[Strike]
    load: Load
    scrapes: list[Scrape]
    eras: list[list[Step]]
    """The steps of the history by server: what one has never heard of is no part of the next one's."""
    counted: Mapping[str, int]
    """What the counters of the demo say."""
    unknown: Mapping[str, int]
    """Commands in the server's file that the replay does not know."""
    logs: Mapping[str, str]
    keys: Mapping[str, int]
    """How many keys of each kind are left."""
    seconds: float
    begin: float
    """When the history begins, in seconds since the epoch."""


def carry_out(plan: Plan, *, folder: Path, tell: Callable[[str], None]) -> Outcome:
    """Carry a plan out, in a folder of its own, and tell of each strike when it is over."""
    with Deployment(folder, workers=plan.workers, mode=plan.mode) as deployment:
        deployment.begin()
        run = Run(plan, deployment=deployment, tell=tell)
        run.see_through()
        return run.outcome()


class Run:
    """One run on a deployment that stands."""

    def __init__(self, plan: Plan, *, deployment: Deployment, tell: Callable[[str], None]) -> None:
        self._plan = plan
        self._deployment = deployment
        self._begin = begin = time.time()
        self._history = history = History(terms=_terms(plan))
        self._load = Load(plan, urls=self._urls("http"), history=history, begin=begin)
        self._nemesis = Nemesis(deployment, plan=plan, history=history, begin=begin, tell=tell)
        self._scraper = Scraper(deployment.slots, begin=begin)
        self._watchers = [
            Watcher(f"watcher-{number}", url=f"{url}/ws/events", history=history, begin=begin)
            for number, url in enumerate(self._urls("ws"))
        ]

    def see_through(self) -> None:
        """Let clients and nemesis do what they have to, then heal, come to rest, and end every process."""
        nemesis = self._nemesis
        self._load.begin()
        nemesis.run(until=lambda: self._load.is_over)
        self._load.close()
        nemesis.heal()
        self._history.healed_at = nemesis.now
        nemesis.run(until=lambda: nemesis.now > self._history.healed_at + RECOVERY_S or self._is_quiet())
        quiet_at = nemesis.now
        if self._is_quiet():
            self._history.quiet_at = quiet_at
        nemesis.run(until=lambda: nemesis.now > quiet_at + WATCHED_S)
        for watcher in self._watchers:
            watcher.close()
        self._scraper.close()
        nemesis.processes.stop_all()

    def outcome(self) -> Outcome:
        """Read what is left, and what was written on the way."""
        deployment, history = self._deployment, self._history
        history.remains = remains_of(deployment)
        replays = list(followed(deployment, history, self._begin))
        history.executions = list(executions_of(deployment, self._begin))
        self._nemesis.note()
        history.told = told_of(history)
        history.notices = list(notices_of(deployment, self._begin))
        return Outcome(
            plan=self._plan,
            history=history,
            strikes=self._nemesis.strikes,
            load=self._load,
            scrapes=self._scraper.scrapes,
            eras=[replay.steps for replay in replays],
            counted=dict(sum((replay.counters for replay in replays), Counter())),
            unknown=dict(sum((replay.unknown for replay in replays), Counter())),
            logs=deployment.logs(),
            keys=keys_of(deployment),
            seconds=self._nemesis.now,
            begin=self._begin,
        )

    def _urls(self, scheme: str) -> list[str]:
        return [f"{scheme}://127.0.0.1:{slot.port}" for slot in self._deployment.apis]

    def _is_quiet(self) -> bool:
        """Whether all has ended, and nothing is under way."""
        system = self._deployment.system
        redis, keys = system.redis, system.keys
        if redis.zcard(keys.schedule) or redis.zcard(keys.claimed):
            return False
        if any(redis.xlen(stream) for stream in keys.streams(DEFAULT_QUEUE)):
            return False
        named = self._load.acknowledged
        # beyond what is promised some of them are not there any more
        return self._plan.mode == "beyond" or system.count_ended(named) == len(named)


def _terms(plan: Plan) -> Terms:
    return Terms(
        seed=plan.seed,
        is_within_promise=plan.mode == "within",
        is_calm=not plan.faults,
        concurrency=CONCURRENCY,
        retry=RETRY,
        visibility=timedelta(seconds=VISIBILITY_S),
        recovery=RECOVERY_S,
    )
