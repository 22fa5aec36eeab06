"""dtq submit --file: many tasks, each line with an answer of its own."""

import os
import stat
import sys
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from dtq.application.requests import BESIDE_PAYLOAD_BYTES
from dtq.application.tasks import TaskService
from dtq.domain.errors import BrokerUnavailable, DtqError, OutcomeUnknown, PayloadTooLarge, QueueFull, RecordUnreadable
from dtq.entrypoints.cli.exits import Exit, Unusable
from dtq.entrypoints.cli.lines import Line, Lines
from dtq.entrypoints.cli.progress import Advance, progress
from dtq.entrypoints.cli.session import container_of, with_broker
from dtq.entrypoints.cli.tally import Answer, Tally
from dtq.entrypoints.container import Container
from dtq.entrypoints.http.schemas import task_fields
from dtq.ports.environment import Clock

BATCH: Final = 500
"""How many lines are submitted together."""

SHORTEST_PAUSE: Final = timedelta(milliseconds=50)
LONGEST_PAUSE: Final = timedelta(seconds=2)
"""How long the command waits before it tries again: at first, and at last."""

WORTH_A_WORD: Final = timedelta(seconds=2)
"""How long nothing moves before people are told why; a queue that is worked off takes tasks all the time."""

Fields = Mapping[str, object]


def submit_file(arguments: Namespace, *, defaults: Fields) -> int:
    """Submit what the lines of a file say, in their order, and tell of each how that went."""

    async def use(container: Container) -> Exit:
        bulk = Bulk(
            container.tasks(),
            clock=container.backend().clock,
            tally=Tally(as_json=arguments.json, away=arguments.away),
            patience=timedelta(seconds=arguments.patience),
            defaults=defaults,
        )
        lines = Lines(descriptor, longest=container.settings().max_payload_bytes + BESIDE_PAYLOAD_BYTES)
        return await bulk.run(lines, total=_size(descriptor))

    container = container_of(arguments)
    with _opened(arguments.file) as descriptor:
        return with_broker(container, use)


class Bulk:
    """Submits lines in batches, and goes on trying while a queue is full or the broker is away."""

    def __init__(
        self, tasks: TaskService, *, clock: Clock, tally: Tally, patience: timedelta, defaults: Fields
    ) -> None:
        self._tasks = tasks
        self._clock = clock
        self._tally = tally
        self._patience = patience
        self._defaults = defaults
        self._moved_at = clock.monotonic()

    async def run(self, lines: Lines, *, total: int | None) -> Exit:
        """Submit all *lines*, say how it went however it ends, and return the exit code."""
        is_whole = False
        try:
            with progress("submitting", total=total) as advance:
                is_whole = await self._submit_all(lines, advance)
        finally:
            self._tally.end(is_whole=is_whole)
        return self._tally.exit_code

    async def _submit_all(self, lines: Lines, advance: Advance) -> bool:
        """Submit line after line; return whether that came to the last."""
        done = 0
        async for block in lines.blocks():
            # the time that a pipe took to bring more is not the broker's
            self._moved_at = self._clock.monotonic()
            for start in range(0, len(block), BATCH):
                batch = block[start : start + BATCH]
                await self._submit(batch, longest=lines.longest)
                if self._tally.stop is not None:
                    return False
                done += sum(line.size + 1 for line in batch)
                advance(done)
        return True

    async def _submit(self, batch: Sequence[Line], *, longest: int) -> None:
        """Submit some lines, and tell of those that were answered, whatever interrupts it."""
        answers: dict[int, Answer] = {}
        waiting: dict[int, Fields] = {}
        for line in batch:
            try:
                waiting[line.number] = self._fields(line, longest=longest)
            except DtqError as error:
                answers[line.number] = error
        keyed = {number for number, fields in waiting.items() if fields.get("idempotency_key") is not None}
        try:
            await self._settle(waiting, answers, keyed=keyed)
        finally:
            for number in sorted(answers):
                self._tally.tell(number, answers[number], has_key=number in keyed)

    def _fields(self, line: Line, *, longest: int) -> Fields:
        if line.text is None:
            raise PayloadTooLarge(size=line.size, limit=longest, field="line")
        given = task_fields(line.text)
        # null means the default in a line too, and that is the option's
        chosen = {name: value for name, value in given.items() if value is not None or name not in self._defaults}
        return {**self._defaults, **chosen}

    async def _settle(self, waiting: dict[int, Fields], answers: dict[int, Answer], *, keyed: Collection[int]) -> None:
        """Move lines from *waiting* to *answers* as they are answered for good, or let the tally stop."""
        pause = SHORTEST_PAUSE
        while waiting:
            number_before = len(waiting)
            trouble = await self._try(waiting, answers, keyed=keyed)
            if len(waiting) < number_before:
                self._moved_at, pause = self._clock.monotonic(), SHORTEST_PAUSE
                self._tally.moved()
            if trouble is None:
                return
            stood_still = timedelta(seconds=self._clock.monotonic() - self._moved_at)
            if stood_still >= self._patience:
                self._tally.stopped(trouble, at=min(waiting))
                return
            if stood_still >= WORTH_A_WORD:
                self._tally.held_up(trouble, at=min(waiting))
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _try(
        self, waiting: dict[int, Fields], answers: dict[int, Answer], *, keyed: Collection[int]
    ) -> DtqError | None:
        """Submit what waits; return why some of it has to wait on."""
        trouble: DtqError | None = None
        with self._tally.under_way(len(waiting)):
            found = await self._tasks.submit_many(list(waiting.values()))
        for number, answer in zip(list(waiting), found, strict=True):
            if isinstance(answer, DtqError) and _will_pass(answer, has_key=number in keyed):
                trouble = trouble or answer
            else:
                answers[number] = answer
                del waiting[number]
        return trouble


def _will_pass(error: DtqError, *, has_key: bool) -> bool:
    """Tell whether the same line may be sent again, and taken then; unlike a task without a key that may be there."""
    if isinstance(error, OutcomeUnknown):
        return has_key
    return isinstance(error, QueueFull | BrokerUnavailable) and not isinstance(error, RecordUnreadable)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    if path == "-":
        if sys.stdin is None:
            raise Unusable("--file: there is no stdin")
        yield sys.stdin.fileno()
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Unusable(f"--file: {path}: {error.strerror}") from error
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise Unusable(f"--file: {path}: is a directory")
        yield descriptor
    finally:
        os.close(descriptor)


def _size(descriptor: int) -> int | None:
    """Return how much there is to read; None where that is not known."""
    found = os.fstat(descriptor)
    return found.st_size if stat.S_ISREG(found.st_mode) else None
