"""What one seed decides before anything happens: what is asked for, and what goes wrong when."""

import math
from collections.abc import Mapping
from random import Random
from typing import Any, Final, Literal

from msgspec import Struct

Mode = Literal["within", "beyond"]

CLIENTS: Final = 4

KINDS: Final[Mapping[str, tuple[float, float]]] = {
    "worker_kill": (0.3, 2.0),
    "worker_term": (0.5, 1.0),
    "worker_stop": (8.0, 13.0),
    "leader_kill": (0.3, 2.0),
    "leader_stop": (11.0, 14.0),
    "api_kill": (0.3, 2.0),
    "api_term": (0.5, 1.0),
    "api_stop": (5.0, 9.0),
    "redis_kill": (0.2, 2.0),
    "redis_shutdown": (0.2, 2.0),
    "redis_stop": (3.0, 9.0),
    "client_kill": (0.0, 0.1),
    "client_pause": (2.0, 6.0),
    "script_flush": (0.0, 0.1),
    "slow_link": (4.0, 8.0),
    "cut_link": (0.0, 0.1),
    "down_link": (2.0, 8.0),
    "drop_replies": (3.0, 5.0),
    "drop_requests": (3.0, 5.0),
    "half_open_link": (7.0, 10.0),
    "deny_worker": (1.0, 3.0),
    "deny_api": (1.0, 3.0),
    "memory_full": (2.0, 5.0),
}
"""What may go wrong within what is promised, and how many seconds it lasts."""

BEYOND: Final[Mapping[str, tuple[float, float]]] = {
    "flush_all": (0.0, 0.1),
    "promote_replica": (0.5, 2.0),
    "power_loss": (0.5, 2.0),
    "restart_empty": (0.5, 2.0),
}
"""What goes beyond it."""

DENIED_TO_WORKERS: Final = ("xack", "xdel", "xadd", "hset", "zadd", "zrem", "xreadgroup", "evalsha", "publish")
DENIED_TO_API: Final = ("xadd", "hset", "zadd", "evalsha", "set", "hmget", "zrem", "publish")

SOUGHT: Final = frozenset({"leader_kill", "leader_stop"})
SEEK_S: Final = 3.0
"""For how long the leader is looked for at most."""

WARM_UP_S: Final = 3.0
LAST_S: Final = 30.0
"""How long before the end of a long run no more faults begin."""

DELAYED: Final = 0.12
KEYED: Final = 0.7
CANCELLED: Final = 0.08
REPEATED: Final = 0.1
"""The shares of the tasks that are delayed, have a key, are cancelled, and are submitted once more."""

OF_PROCESSES: Final = frozenset({"worker", "leader", "api"})


class Fault(Struct, frozen=True, kw_only=True):
    """One thing that goes wrong: what, when, for how long, and whom it strikes."""

    number: int
    kind: str
    at: float
    lasts: float
    whom: int
    """The process it strikes, of those that it may strike."""
    detail: str = ""

    @property
    def is_of_processes(self) -> bool:
        """Whether it strikes processes, and not Redis or the lines to it: of each sort there is one at a time."""
        return self.kind.split("_")[0] in OF_PROCESSES

    @property
    def ends_at(self) -> float:
        """When it is over."""
        return self.at + self.lasts


class Request(Struct, frozen=True, kw_only=True):
    """One task to submit: when, what, and what else is done with it."""

    number: int
    at: float
    body: Mapping[str, Any]
    cancel_after: float | None
    is_repeated: bool
    """Whether it is submitted once more, after it was answered for."""


class Plan(Struct, frozen=True, kw_only=True):
    """Everything that a seed decides beforehand."""

    seed: int
    mode: Mode
    workers: int
    tasks: int
    seconds: float
    faults: tuple[Fault, ...]
    requests: tuple[Request, ...]

    def lines(self) -> list[str]:
        """The faults as text."""
        return [
            f"{fault.at:7.2f} s  {fault.kind} {fault.whom} {fault.detail} for {fault.lasts:.2f} s"
            for fault in self.faults
        ]


def plan_of(seed: int, *, tasks: int, workers: int, minutes: float | None, mode: Mode) -> Plan:
    """Draw everything that *seed* decides. Without minutes each kind of fault comes once, as close as may be."""
    faults = tuple(_faults(Random(f"{seed} faults"), minutes=minutes, mode=mode))
    seconds = max(fault.ends_at for fault in faults) if minutes is None else 60 * minutes
    requests = tuple(_request(seed, number, at=seconds * number / tasks) for number in range(tasks))
    return Plan(seed=seed, mode=mode, workers=workers, tasks=tasks, seconds=seconds, faults=faults, requests=requests)


def _faults(random: Random, *, minutes: float | None, mode: Mode) -> list[Fault]:
    spans = KINDS if mode == "within" else {**KINDS, **BEYOND}
    faults: list[Fault] = []
    lanes = {True: WARM_UP_S, False: WARM_UP_S}
    last = math.inf if minutes is None else 60 * minutes - LAST_S
    while not faults or (minutes is not None and min(lanes.values()) < last):
        for kind in random.sample(list(spans), len(spans)):
            sort = kind.split("_")[0] in OF_PROCESSES
            gap = random.uniform(0.5, 1.5) if minutes is None else random.uniform(2.0, 10.0)
            fault = Fault(
                number=len(faults),
                kind=kind,
                at=lanes[sort] + gap,
                lasts=random.uniform(*spans[kind]),
                whom=random.randrange(60),
                detail=_detail(random, kind),
            )
            # a process that has come back is given the time to begin before the next one goes
            rest = 1.5 if sort else 0.5
            lanes[sort] = fault.ends_at + rest + (SEEK_S if kind in SOUGHT else 0.0)
            if fault.at < last:
                faults.append(fault)
    return sorted(faults, key=lambda fault: fault.at)


def _detail(random: Random, kind: str) -> str:
    if kind == "deny_worker":
        return random.choice(DENIED_TO_WORKERS)
    if kind == "deny_api":
        return random.choice(DENIED_TO_API)
    return ""


_SHAPES: Final[Mapping[str, tuple[int, Mapping[str, Any], Mapping[str, Any]]]] = {
    "work": (30, {"max_attempts": 6}, {"seconds": (0.0, 0.3)}),
    "long": (4, {"task_type": "work", "max_attempts": 6}, {"kind": "long", "seconds": (2.0, 8.0)}),
    "once": (6, {"task_type": "work", "max_attempts": 6}, {"kind": "retry", "fails": 1, "seconds": (0.0, 0.3)}),
    "twice": (4, {"task_type": "work", "max_attempts": 6}, {"kind": "retry", "fails": 2, "seconds": (0.0, 0.3)}),
    "permanent": (3, {"task_type": "work", "max_attempts": 4}, {"kind": "permanent"}),
    "hang": (3, {"task_type": "work", "max_attempts": 2, "timeout_ms": 700}, {"kind": "hang", "seconds": 60}),
    "work_in_thread": (8, {"max_attempts": 6}, {"seconds": (0.0, 0.3)}),
    "echo_task": (14, {"max_attempts": 6}, {}),
    "sleep_task": (6, {"max_attempts": 6}, {"seconds": (0.0, 0.5)}),
    "slow_task": (3, {"max_attempts": 6}, {"seconds": (0.0, 0.5)}),
    "flaky_task": (8, {"max_attempts": 6}, {"fail_times": 1}),
    "always_fail_task": (4, {"max_attempts": 2}, {}),
    "counter_task": (7, {"max_attempts": 6}, {"name": "chaos"}),
}
"""What is submitted: how often, with which fields, and with which payload; a pair is a span to draw from."""


def _request(seed: int, number: int, *, at: float) -> Request:
    random = Random(f"{seed} request {number}")
    shape = random.choices(list(_SHAPES), [weight for weight, _, _ in _SHAPES.values()])[0]
    _, fields, payload = _SHAPES[shape]
    drawn = {name: random.uniform(*value) if isinstance(value, tuple) else value for name, value in payload.items()}
    body = {"task_type": shape, **fields, "payload": {"n": number, **drawn}, "priority": random.randrange(10)}
    if random.random() < DELAYED:
        body["delay_seconds"] = random.choice((1, 2, 3, 5))
    if random.random() < KEYED:
        body["idempotency_key"] = f"key-{number}"
    is_cancelled, is_repeated = random.random() < CANCELLED, random.random() < REPEATED
    return Request(
        number=number,
        at=at,
        body=body,
        cancel_after=random.uniform(0.0, 1.5) if is_cancelled else None,
        is_repeated="idempotency_key" in body and is_repeated,
    )
