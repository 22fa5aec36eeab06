"""What one seed decides before anything happens: who is there, what is asked for, and what goes wrong when."""

from datetime import timedelta
from typing import Any, Final, Literal

from msgspec import Struct, json

from dtq.application.settings import WorkerSettings
from dtq.domain.delivery import FailurePolicy
from dtq.domain.retry import RetryPolicy
from dtq.domain.task import QueueName, WorkerId
from tests.simulation.chances import Random, child

Mode = Literal["within", "beyond"]

QUEUES: Final = (QueueName("default"), QueueName("other"))
KEYS: Final = ("key-a", "key-b", "key-c")
TASK_TYPE: Final = "scripted"
SYNC_TYPE: Final = "scripted-sync"

BEHAVIORS: Final = (
    ("ok", 10, 0.0, 1.5),
    ("retry", 4, 0.0, 0.8),
    ("permanent", 2, 0.0, 0.5),
    ("timeout", 1, 0.0, 0.3),
    ("hang", 2, 3.0, 12.0),
    ("stubborn", 1, 2.0, 6.0),
    ("block", 1, 0.5, 9.0),
    ("value", 1, 0.0, 0.3),
)
"""What a handler may do in one attempt: how often, and for how many seconds."""

DISASTERS: Final = (
    "kill",
    "pause",
    "pause_leader",
    "block_leader",
    "down",
    "lossy",
    "slow",
    "deaf",
    "cut",
    "server_pause",
    "server_restart",
    "clock_ahead",
    "clock_back",
    "memory_full",
    "half_step",
    "half_step",
    "usurp",
    "usurp",
    "trap_kill",
    "trap_leader",
    "trap_leader",
    "trap_leader",
    "trap_pause",
    "trap_pause",
    "trap_unanswered",
    "trap_unanswered",
    "retire",
    "retire",
    "kill_client",
    "kill_client",
    "trap_client",
    "trap_client",
    "trap_late",
    "trap_late",
    "slow_all",
    "host_clock",
)
"""What may go wrong."""

LONGEST_TRAP: Final = 8.0
PAST_THE_CLAIM: Final = (61.0, 72.0)
"""How long a leader must stand still for what it has taken to be taken by the next one."""


class Hiring(Struct, frozen=True, kw_only=True):
    """One worker process that there is to be, again whenever it has ended."""

    slot: str
    settings: WorkerSettings
    keeps_id: bool
    """Whether the next process has the same worker id."""


class Action(Struct, frozen=True, kw_only=True):
    """What one client does at one moment."""

    at: float
    client: int
    what: str
    number: int = 0
    fields: dict[str, Any] = {}


class Disaster(Struct, frozen=True, kw_only=True):
    """One thing that goes wrong, for how long, and a number that says whom it hits."""

    at: float
    what: str
    lasts: float
    whom: float

    @property
    def ends_at(self) -> float:
        """When all of it is over; a trap may spring late, and what it does takes its time."""
        return self.at + self.lasts + (self.armed if self.what.startswith("trap") else 0.0)

    @property
    def armed(self) -> float:
        """For how long a trap waits for somebody."""
        return min(self.lasts, LONGEST_TRAP)


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that a seed decides beforehand."""

    seed: int
    mode: Mode
    horizon: float
    workers: tuple[Hiring, ...]
    actions: tuple[Action, ...]
    disasters: tuple[Disaster, ...]

    @property
    def recovery(self) -> float:
        """Within how many seconds after the last fault everything must have ended."""
        settings = self.workers[0].settings
        reaping = settings.visibility_timeout * 1.25 + 2 * settings.heartbeat_interval
        steps = sum(disaster.lasts for disaster in self.disasters if disaster.what in {"clock_ahead", "clock_back"})
        claim, lead, backoff, restart, runs = 65.0, 10.0, 5.0, 15.0, 4 * (8.0 + 5.0)
        return 2 * reaping.total_seconds() + claim + lead + backoff + restart + runs + steps


def plan_of(seed: int, *, mode: Mode = "within") -> Plan:
    """Draw everything that *seed* decides."""
    random = child(seed, "plan")
    horizon = random.uniform(6.0, 16.0)
    queues = QUEUES[: random.choice((1, 1, 2))]
    return Plan(
        seed=seed,
        mode=mode,
        horizon=horizon,
        workers=tuple(_hirings(random, queues)),
        actions=tuple(_actions(random, queues, horizon)),
        disasters=tuple(_disasters(child(seed, "disasters"), horizon, mode)),
    )


def _hirings(random: Random, queues: tuple[QueueName, ...]) -> list[Hiring]:
    visibility, heartbeat, drain = random.uniform(4.0, 8.0), random.uniform(1.0, 2.0), random.uniform(0.3, 4.0)
    policy = FailurePolicy(
        retry=RetryPolicy(base=timedelta(milliseconds=200), maximum=timedelta(milliseconds=350), jitter=0.2),
        dead_letters=random.random() < 0.9,
    )
    hirings = []
    for number in range(random.choice((2, 2, 3))):
        settings = WorkerSettings(
            worker_id=WorkerId(f"worker-{number}"),
            hostname="host",
            queue=queues[number % len(queues)],
            concurrency=random.choice((1, 2, 3)),
            visibility_timeout=timedelta(seconds=visibility),
            heartbeat_interval=timedelta(seconds=heartbeat),
            drain_timeout=timedelta(seconds=drain),
            failure_policy=policy,
        )
        hirings.append(Hiring(slot=f"w{number}", settings=settings, keeps_id=random.random() < 0.5))
    return hirings


def _actions(random: Random, queues: tuple[QueueName, ...], horizon: float) -> list[Action]:
    burst = random.random() < 0.3
    actions = []
    for number in range(random.randint(6, 22)):
        at = 1.0 + (random.uniform(0, 0.2) if burst else random.uniform(0, horizon * 0.8))
        fields = _submission(random, queues, number)
        actions.append(Action(at=at, client=random.randrange(2), what="submit", number=number, fields=fields))
    kinds = ("cancel",) * 4 + ("requeue",) * 3 + ("get", "wait", "discard", "repeat", "pause", "purge", "purge_dead")
    for _ in range(random.randint(3, 14)):
        fields = {"queue": random.choice(queues)}
        at = random.uniform(1.0, horizon)
        number = random.randrange(22)
        what = random.choice(kinds)
        actions.append(Action(at=at, client=random.randrange(2), what=what, number=number, fields=fields))
    return sorted(actions, key=lambda action: action.at)


def _submission(random: Random, queues: tuple[QueueName, ...], number: int) -> dict[str, Any]:
    names, weights = zip(*((name, weight) for name, weight, _, _ in BEHAVIORS), strict=True)
    spans = {name: (low, high) for name, _, low, high in BEHAVIORS}
    script = [(name, round(random.uniform(*spans[name]), 3)) for name in random.choices(names, weights, k=4)]
    fields: dict[str, Any] = {
        "task_type": SYNC_TYPE if random.random() < 0.2 else TASK_TYPE,
        "payload": json.encode({"n": number, "script": script}).decode(),
        "queue": random.choice(queues),
        "priority": random.randrange(10),
        "max_attempts": random.randint(1, 4),
        "timeout_ms": random.randint(800, 5000),
    }
    if random.random() < 0.35:
        fields["delay_seconds"] = round(random.uniform(0.01, 5.0), 3)
    if random.random() < 0.35:
        fields["idempotency_key"] = random.choice(KEYS)
    if random.random() < 0.15:
        fields["metadata"] = json.encode({"ttl_seconds": random.randint(1, 6)}).decode()
    return fields


def _disasters(random: Random, horizon: float, mode: Mode) -> list[Disaster]:
    is_calm = mode == "within" and random.random() < 0.15
    if is_calm:
        return []
    # a few kinds at a time find what all of them together would hide
    kinds = random.sample(DISASTERS, k=random.randint(1, 6))
    disasters = []
    for _ in range(random.randint(1, 8)):
        what = random.choice(kinds)
        lasts = random.choice((random.uniform(0.1, 2.0), random.uniform(2.0, 8.0), random.uniform(8.0, 14.0)))
        lasts = random.uniform(*PAST_THE_CLAIM) if what == "trap_leader" else lasts
        at = random.uniform(0.5, horizon)
        disasters.append(Disaster(at=at, what=what, lasts=lasts, whom=random.random()))
    if mode == "beyond":
        disasters.append(Disaster(at=random.uniform(2.0, horizon), what="wipe", lasts=0.0, whom=0.0))
    return sorted(disasters, key=lambda disaster: disaster.at)
