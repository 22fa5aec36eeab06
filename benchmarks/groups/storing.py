"""What memory is taken by programs and, in Redis, by tasks that wait or have ended."""

from collections.abc import Callable
from functools import partial
from typing import Final

from benchmarks import handlers
from benchmarks.ground import READY_WITHIN_S, SETTLE_S, Ground, client_of, pause, run, submission
from benchmarks.groups.http_enqueueing import SUBMIT, listening, many
from benchmarks.http_load import Load, sent
from benchmarks.measuring import Case, Figures, Group
from benchmarks.programs import wait_until_done
from benchmarks.redis_server import MeasuredServer
from benchmarks.stamps import Stamps

WAVE: Final = 20_000
TASKS: Final = 1_000_000
HTTP_TASKS: Final = 200_000
STORED: Final = 20_000
BATCH: Final = 500
SHORT_LIVES: Final = {"DTQ_TASK_RETENTION_S": "5", "DTQ_RESULT_RETENTION_S": "5", "DTQ_IDEM_TTL_S": "5"}
"""So that what a million ended tasks take is not Redis' memory as well."""


def worker_memory(ground: Ground) -> Figures:
    """Measure a worker before, under and after many tasks; growth is from the first tenth on, when all is loaded."""
    waves = max(3, int(TASKS / WAVE * ground.scale))
    wave = max(200, min(WAVE, int(WAVE * ground.scale * 10)))
    with Stamps(wave) as stamps, ground.worker(stamps, concurrency=100, settings=SHORT_LIVES) as worker:
        wait_until_done(lambda: ground.known_workers() > 0, within_s=READY_WITHIN_S, program=worker)
        pause(SETTLE_S)
        figures = {"idle_mib": worker.memory_mib()}
        for number in range(1, waves + 1):
            ground.fill(submission(slot) for slot in range(wave))
            wait_until_done(partial(_has_run, stamps, number * wave), within_s=600, program=worker)
            if number == max(1, waves // 10):
                figures["after_tenth_mib"] = worker.memory_mib()
        figures["after_mib"] = worker.memory_mib()
        figures["growth_percent"] = (figures["after_mib"] / figures["after_tenth_mib"] - 1) * 100
        return figures | {"peak_mib": worker.peak_mib(), "tasks": float(waves * wave)}


def _has_run(stamps: Stamps, count: int) -> bool:
    return stamps.runs() >= count


def api_memory(ground: Ground) -> Figures:
    """Measure an API before, under and after many submissions."""
    api, port = ground.api()
    with api:
        listening(api, port)
        pause(SETTLE_S)
        figures = {"idle_mib": api.memory_mib()}
        count = ground.sized(HTTP_TASKS, least=2000) // 100
        for name, part in (("after_tenth_mib", count // 10), ("after_mib", count - count // 10)):
            load = Load(path=f"{SUBMIT}/batch", body=many(), count=max(1, part), connections=1, expected="200")
            run(sent(load, port=port))
            figures[name] = api.memory_mib()
        figures["growth_percent"] = (figures["after_mib"] / figures["after_tenth_mib"] - 1) * 100
        return figures | {"peak_mib": api.peak_mib(), "tasks": float(count * 100)}


def stored(*, is_recommended: bool) -> Callable[[Ground], Figures]:
    """Measure the bytes of tasks with 200 bytes of payload, waiting and then ended."""

    def measure(ground: Ground) -> Figures:
        if not is_recommended:
            return _stored(ground, ground.server)
        server = ground.recommended()
        try:
            return _stored(ground, server)
        finally:
            server.close()

    return measure


def _stored(ground: Ground, server: MeasuredServer) -> Figures:
    count = ground.sized(STORED, least=1000)
    with Stamps(count) as stamps:
        # what is made once, scripts and the groups of a queue, is no task's
        run(_prepared(server.url))
        pause(SETTLE_S)
        before = server.used_bytes()
        ground.fill((submission(number) for number in range(count)), server=server)
        pause(SETTLE_S)
        waiting = server.used_bytes()
        with ground.worker(stamps, concurrency=100, settings={"DTQ_REDIS_URL": server.url}) as worker:
            wait_until_done(lambda: stamps.done() >= count, within_s=300, program=worker)
        pause(SETTLE_S)
        return {
            "bytes_waiting": (waiting - before) / count,
            "bytes_ended": (server.used_bytes() - before) / count,
        }


async def _prepared(url: str) -> None:
    async with client_of(url) as client:
        submitted = await client.submit(handlers.NOOP, {"i": 0, "x": ""})
        await client.cancel(submitted.task_id)


GROUP: Final = Group(
    name="memory",
    about="of a worker and an API, idle, at most and after many tasks; of Redis, a task with 200 bytes of payload",
    cases=(
        Case(name="worker", measure=worker_memory),
        Case(name="API", measure=api_memory),
        Case(name="Redis as it comes", measure=stored(is_recommended=False)),
        Case(name="Redis, deploy/redis.conf", measure=stored(is_recommended=True)),
    ),
)
