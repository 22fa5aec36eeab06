"""What callers hear of their submissions is true, whatever becomes of the server in their midst.

Many submit at once, one by one and in batches, little and much, under keys and without. A task that somebody was told
of exists once, one that was refused does not exist, and only where nobody can know it may be either.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from redis import Redis

from dtq import AsyncClient, DtqError, OutcomeUnknown, Submission, Submitted, TaskContext, task
from tests.judged.sizes import FULL
from tests.judged.waiting import wait_until
from tests.servers import start_own
from tests.servers.proxy import Proxy

CALLS = 40
SEEDS = range(40 if FULL else 3)
LITTLE = (5, 10, 200, 200, 200)
MUCH = (10, 2_000, 30_000, 100_000, 180_000)
KEYS = 8
HEARD_WITHIN_S = 60.0
STRIKES_WITHIN_S = 0.1
Answer = Submitted | DtqError


@task("work")
async def work(payload: dict[str, Any], ctx: TaskContext) -> None:
    """Never run."""


@dataclass
class Ground:
    """A server, the line to it, and what callers asked for and heard."""

    admin: Any
    line: Proxy
    rng: Random
    calls: list["asyncio.Task[None]"] = field(default_factory=list)
    asked: list[Submission] = field(default_factory=list)
    heard: dict[int, Answer] = field(default_factory=dict)

    def put_right(self) -> None:
        """Undo what the faults did, and wait until the server has done all that reached it."""
        self.line.cut()
        self.line.heal()
        self.admin.config_set("maxmemory", 0)
        self.admin.config_set("min-replicas-to-write", 0)
        self.admin.acl_setuser("default", enabled=True, commands=["+@all"])
        wait_until(lambda: len(self.admin.client_list()) == 1, within=HEARD_WITHIN_S, what="others are gone")

    def submission(self, *, sizes: Sequence[int]) -> Submission:
        """Return one that says which it is."""
        key = f"key-{self.rng.randrange(KEYS)}" if self.rng.random() < 0.1 else None
        payload = {"mark": len(self.asked), "text": "x" * self.rng.choice(sizes)}
        self.asked.append(Submission("work", payload, idempotency_key=key))
        return self.asked[-1]


def the_memory_is_full(ground: Ground) -> None:
    room = ground.rng.choice((0, 300_000, 2_000_000))
    ground.admin.config_set("maxmemory", ground.admin.info("memory")["used_memory"] + room)


def the_replicas_are_gone(ground: Ground) -> None:
    ground.admin.config_set("min-replicas-to-write", 1)


def a_command_is_forbidden(ground: Ground) -> None:
    command = ground.rng.choice(("xadd", "hset", "publish", "zadd", "pexpire"))
    ground.admin.acl_setuser("default", enabled=True, commands=[f"-{command}"])


def the_scripts_are_forgotten(ground: Ground) -> None:
    ground.admin.script_flush()


def requests_are_lost(ground: Ground) -> None:
    ground.line.drop_requests(ground.rng.randint(1, 5), word=b"EVALSHA", skip=ground.rng.randint(0, 3))


def replies_are_lost(ground: Ground) -> None:
    ground.line.drop_replies(ground.rng.randint(1, 5), word=b"EVALSHA", skip=ground.rng.randint(0, 3))


def the_connections_end(ground: Ground) -> None:
    ground.line.cut()


def the_replies_stop(ground: Ground) -> None:
    ground.line.hold(requests=False)


def callers_leave(ground: Ground) -> None:
    for call in ground.rng.sample(ground.calls, len(ground.calls) // 2):
        call.cancel()


FAULTS = (
    the_memory_is_full,
    the_replicas_are_gone,
    a_command_is_forbidden,
    the_scripts_are_forgotten,
    requests_are_lost,
    replies_are_lost,
    the_connections_end,
    the_replies_stop,
    callers_leave,
)


@pytest.fixture(scope="module")
def server_and_line() -> Iterator[tuple[Any, Proxy]]:
    with start_own() as server, Proxy(server.url) as line:
        yield Redis.from_url(server.url, decode_responses=True), line


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_a_task_exists_as_its_caller_was_told(
    server_and_line: tuple[Any, Proxy], fault: Callable[[Ground], None], seed: int
) -> None:
    admin, line = server_and_line
    admin.flushall()
    ground = Ground(admin, line, Random(seed))  # noqa: S311 - nothing is secret here
    try:
        async with AsyncClient(line.url, tasks=[work]) as client:
            await _submit_all(client, ground, fault=fault)
    finally:
        ground.put_right()

    see_that_all_is_true(ground)


async def _submit_all(client: AsyncClient, ground: Ground, *, fault: Callable[[Ground], None]) -> None:
    sizes = ground.rng.choice((LITTLE, MUCH))
    striking = asyncio.create_task(_strike(ground, fault=fault))
    for _ in range(CALLS):
        many = ground.rng.choice((1, 1, 1, 3, 20, 36, 100) if sizes is LITTLE else (1, 1, 5, 20, 40))
        submissions = [ground.submission(sizes=sizes) for _ in range(many)]
        ground.calls.append(asyncio.create_task(_call(client, ground, submissions)))
        if ground.rng.random() < 0.2:
            await asyncio.sleep(ground.rng.random() * 0.003)
    async with asyncio.timeout(HEARD_WITHIN_S):
        ended = await asyncio.gather(striking, *ground.calls, return_exceptions=True)
    assert {None} == {None if isinstance(one, asyncio.CancelledError) else one for one in ended}


async def _strike(ground: Ground, *, fault: Callable[[Ground], None]) -> None:
    # something is on its way by then, being carried out or answered
    await asyncio.sleep(ground.rng.random() * STRIKES_WITHIN_S)
    fault(ground)


async def _call(client: AsyncClient, ground: Ground, submissions: Sequence[Submission]) -> None:
    answers: Sequence[Answer]
    if len(submissions) == 1:
        (one,) = submissions
        try:
            answers = [await client.submit(one.task_type, one.payload, idempotency_key=one.idempotency_key)]
        except DtqError as error:
            answers = [error]
    else:
        answers = await client.submit_many(submissions)
    for submission, answer in zip(submissions, answers, strict=True):
        ground.heard[_mark(submission.payload)] = answer


def see_that_all_is_true(ground: Ground) -> None:
    """Compare what was heard with what is stored."""
    entries = [fields["task_id"] for name in _names(ground, "stream:*") for _, fields in ground.admin.xrange(name)]
    records = [ground.admin.hgetall(name) for name in _names(ground, "task:*")]
    marks = {record["task_id"]: _mark(json.loads(record["payload"])) for record in records}
    assert sorted(entries) == sorted(marks), "each record has one entry, and each entry a record"
    assert 1 >= max(Counter(marks.values()).values(), default=0), "no submission makes two tasks"
    tasks_of_keys: dict[str, set[str]] = {}
    for mark, answer in ground.heard.items():
        key = ground.asked[mark].idempotency_key
        if isinstance(answer, Submitted):
            assert answer.task_id in marks
            assert answer.duplicate or marks[answer.task_id] == mark
            tasks_of_keys.setdefault(key or str(mark), set()).add(answer.task_id)
        elif not isinstance(answer, OutcomeUnknown):
            assert mark not in marks.values(), f"{answer!r} was heard of a task that exists"
    assert {1} >= {len(tasks) for tasks in tasks_of_keys.values()}, "a key stands for one task"


def _names(ground: Ground, pattern: str) -> list[str]:
    return [name for name in ground.admin.keys(f"dtq:{pattern}") if ground.admin.type(name) in {"hash", "stream"}]


def _mark(payload: Any) -> int:
    return int(payload["mark"])
