"""One run: a plan is carried out on a deployment, which then heals and comes to rest; what was seen is its history."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from dtq.adapters.redis.codec import SNAPSHOT, task_of
from dtq.adapters.redis.keys import BANDS, GROUP
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.events import Event, EventType
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.task import EntryId, QueueName, Task, TaskId
from tests.chaos import handlers
from tests.chaos.aof import read_base, read_blocks
from tests.chaos.deployment import CONCURRENCY, RETRY, VISIBILITY_S, Deployment
from tests.chaos.load import Load
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import Mode, Plan
from tests.chaos.replay import Replay
from tests.chaos.strike import Strike
from tests.chaos.watch import Watcher
from tests.judged.census import is_bounded
from tests.simulation.history import Entry, Execution, History, Notice, Remains, Step, Terms

CLAIM_S: Final = 60.0
RECOVERY_S: Final = 3 * VISIBILITY_S + CLAIM_S + 45.0
"""Within which time after the last fault all must have ended: lost twice, on loan, delayed, retried, and run."""

WATCHED_S: Final = 7.0
"""How long watchers listen on, so that what was sent last has come."""


NOTICED: Final = ("loop_failed", "beat_failed", "recording_failed")


class Outcome(Struct, kw_only=True):
    """What came of one run."""

    plan: Plan
    history: History
    strikes: list[Strike]
    load: Load
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
        begin = time.time()
        history = History(terms=_terms(plan))
        load = Load(plan, urls=_urls(deployment, "http"), history=history, begin=begin)
        nemesis = Nemesis(deployment, plan=plan, history=history, begin=begin, tell=tell)
        _see_it_through(deployment, nemesis, history, load, begin)
        return _outcome(deployment, nemesis, history, load, begin)


def _see_it_through(deployment: Deployment, nemesis: Nemesis, history: History, load: Load, begin: float) -> None:
    """Let clients and nemesis do what they have to, then heal, come to rest, and end every process."""
    watchers = [
        Watcher(f"watcher-{number}", url=f"{url}/ws/events", history=history, begin=begin)
        for number, url in enumerate(_urls(deployment, "ws"))
    ]
    load.begin()
    nemesis.run(until=lambda: load.is_over)
    load.close()
    nemesis.heal()
    history.healed_at = nemesis.now
    _come_to_rest(deployment, nemesis, history, load)
    quiet_at = nemesis.now
    nemesis.run(until=lambda: nemesis.now > quiet_at + WATCHED_S)
    for watcher in watchers:
        watcher.close()
    nemesis.processes.stop_all()


def _outcome(deployment: Deployment, nemesis: Nemesis, history: History, load: Load, begin: float) -> Outcome:
    """Read what is left, and what was written on the way."""
    history.remains = _remains(deployment)
    replays = list(_follow(deployment, history, begin))
    history.executions = list(_executions(deployment, begin))
    nemesis.note()
    history.told = _told(history)
    history.notices = list(_notices(deployment, begin))
    return Outcome(
        plan=nemesis.plan,
        history=history,
        strikes=nemesis.strikes,
        load=load,
        eras=[replay.steps for replay in replays],
        counted=dict(sum((replay.counters for replay in replays), Counter())),
        unknown=dict(sum((replay.unknown for replay in replays), Counter())),
        logs=deployment.logs(),
        keys=_keys(deployment),
        seconds=nemesis.now,
        begin=begin,
    )


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


def _urls(deployment: Deployment, scheme: str) -> list[str]:
    return [f"{scheme}://127.0.0.1:{slot.port}" for slot in deployment.apis]


def _come_to_rest(deployment: Deployment, nemesis: Nemesis, history: History, load: Load) -> None:
    """Wait until all has ended and nothing is under way."""
    until = history.healed_at + RECOVERY_S
    nemesis.run(until=lambda: nemesis.now > until or _is_quiet(deployment, load, nemesis.plan.mode))
    if _is_quiet(deployment, load, nemesis.plan.mode):
        history.quiet_at = nemesis.now


def _is_quiet(deployment: Deployment, load: Load, mode: Mode) -> bool:
    system = deployment.system
    redis, keys = system.redis, system.keys
    if redis.zcard(keys.schedule) or redis.zcard(keys.claimed):
        return False
    if any(redis.xlen(stream) for stream in keys.streams(DEFAULT_QUEUE)):
        return False
    # beyond what is promised some of them are not there any more
    return mode == "beyond" or system.count_ended(load.acknowledged) == len(load.acknowledged)


def _follow(deployment: Deployment, history: History, begin: float) -> Iterator[Replay]:
    """Follow each server's own file; where another one begins, so do the tasks."""
    for folder in deployment.eras:
        replay = Replay(deployment.system.keys, begin=begin)
        for block in read_base(folder):
            # what it begins with are no steps of this era
            list(replay.follow(block))
        for block in read_blocks(folder):
            for one in replay.follow(block):
                if isinstance(one, Step):
                    replay.steps.append(one)
                else:
                    history.sweeps.append(one)
        history.steps += replay.steps
        if replay.wiped_at is not None:
            history.wiped_at = replay.wiped_at
        yield replay


def _executions(deployment: Deployment, begin: float) -> Iterator[Execution]:
    """Read what handlers have counted: a line at each begin, one at each end."""
    path = handlers.store_of(deployment.system.journal.path)
    running: dict[tuple[str, int, str], Execution] = {}
    for text in path.read_text().splitlines() if path.exists() else ():
        line: dict[str, Any] = json.loads(text)
        outcome, at = line.pop("outcome"), line.pop("at") - begin
        of = (line["task_id"], line["attempt"], line["who"])
        if not outcome:
            running[of] = Execution(at=at, **line)
            yield running[of]
        else:
            running[of].outcome, running[of].ended_at = outcome, at


def _told(history: History) -> dict[str, int]:
    """How often the watcher that heard most of each step's event heard it."""
    heard = Counter(
        (watch.who, message.event_id)
        for watch in history.watches
        for _, message in watch.heard
        if isinstance(message, Event) and message.task_id and message.type is not EventType.DUPLICATE_ABSORBED
    )
    told: dict[str, int] = {}
    for (_, event_id), times in heard.items():
        told[event_id] = max(times, told.get(event_id, 0))
    return told


def _notices(deployment: Deployment, begin: float) -> Iterator[Notice]:
    """Read what processes told of loops that failed and of what they could not record."""
    for name, text in deployment.logs().items():
        for line in text.splitlines():
            if any(word in line for word in NOTICED):
                told = json.loads(line)
                at = datetime.fromisoformat(told["timestamp"]).timestamp() - begin
                yield Notice(at, name, told["event"], told)


def _remains(deployment: Deployment) -> Remains:
    system = deployment.system
    redis, keys = system.redis, system.keys
    entries = [
        Entry(DEFAULT_QUEUE, priority, EntryId(entry_id), fields.get("task_id", ""), None)
        for priority, stream in zip(BANDS, keys.streams(DEFAULT_QUEUE), strict=True)
        for entry_id, fields in redis.xrange(stream)
    ]
    pending = sum(
        redis.xpending(stream, GROUP)["pending"] for stream in keys.streams(DEFAULT_QUEUE) if redis.exists(stream)
    )
    scheduled = [*redis.zrange(keys.schedule, 0, -1), *redis.zrange(keys.claimed, 0, -1)]
    return Remains(
        tasks=dict(_tasks(deployment)),
        schedule=[TaskId(one) for one in scheduled],
        entries=entries,
        letters={EntryId(entry_id): fields["task_id"] for entry_id, fields in redis.xrange(keys.dead_letters)},
        results=_texts(deployment, keys.result(TaskId(""))),
        keys=dict(_records(deployment)),
        sizes=dict(_sizes(deployment)),
        stats={DEFAULT_QUEUE: (len(entries), pending, len(scheduled))},
    )


def _tasks(deployment: Deployment) -> Iterator[tuple[TaskId, Task]]:
    system = deployment.system
    prefix = system.keys.task_prefix
    for key in system.redis.scan_iter(match=f"{prefix}*", count=1000):
        task_id = key.removeprefix(prefix)
        values = system.redis.hmget(key, *SNAPSHOT)
        task = task_of(values, task_id=task_id, payload=system.redis.hget(key, "payload"))
        assert task is not None, key
        yield TaskId(task_id), task


def _texts(deployment: Deployment, prefix: str) -> dict[TaskId, str]:
    redis = deployment.system.redis
    return {TaskId(key.removeprefix(prefix)): redis.get(key) for key in redis.scan_iter(match=f"{prefix}*", count=1000)}


def _records(deployment: Deployment) -> Iterator[tuple[tuple[QueueName, str], IdempotencyRecord]]:
    prefix = deployment.system.keys.idempotency(DEFAULT_QUEUE, "")
    for key, text in _texts(deployment, prefix).items():
        yield (DEFAULT_QUEUE, str(key)), msgspec.json.decode(text, type=IdempotencyRecord)


def _sizes(deployment: Deployment) -> Iterator[tuple[str, tuple[int, int]]]:
    """What must be bounded, and its bound."""
    system = deployment.system
    redis, keys = system.redis, system.keys
    boundless = [
        key
        for key in redis.scan_iter(match=f"{system.prefix}:*", count=1000)
        if redis.ttl(key) == -1 and not is_bounded(system, key, key.removeprefix(f"{system.prefix}:"))
    ]
    yield f"keys without lifetime or bound {boundless[:3]}", (len(boundless), 0)
    slots = len(deployment.slots)
    yield "worker names", (redis.scard(keys.workers), 2 * slots)
    for stream in keys.streams(DEFAULT_QUEUE):
        if redis.exists(stream):
            yield f"consumers of {stream}", (len(redis.xinfo_consumers(stream, GROUP)), 3 * slots)


def _keys(deployment: Deployment) -> dict[str, int]:
    found: dict[str, int] = {}
    for key in deployment.system.redis.scan_iter(match=f"{deployment.system.prefix}:*", count=1000):
        kind = key.removeprefix(f"{deployment.system.prefix}:").split(":")[0]
        found[kind] = found.get(kind, 0) + 1
    return found
