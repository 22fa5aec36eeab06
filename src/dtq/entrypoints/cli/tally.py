"""What became of the lines of a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
from msgspec import Struct

from dtq.application.creating import Submitted
from dtq.domain.errors import DtqError, IdempotencyInProgress, OutcomeUnknown
from dtq.domain.status import TaskStatus
from dtq.entrypoints.cli.exits import Exit, exit_of, lines_of, members_of, print_error
from dtq.entrypoints.cli.output import print_json_line, print_line
from dtq.entrypoints.cli.streams import write_error_json

Answer: TypeAlias = Submitted | DtqError


class LineResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What programs are told of a line that was taken."""

    line: int
    task_id: str
    status: TaskStatus | None
    duplicate: bool = False


class Summary(Struct, frozen=True, kw_only=True):
    """How many lines went which way. Those that are *unknown* may have been submitted or not."""

    submitted: int
    duplicates: int
    rejected: int
    unknown: int
    stopped_at: int | None
    """The first line that was not taken, where a full queue or a lost broker ended it all."""


class Tally:
    """Counts lines and tells of them: of each to programs, of bad ones to people."""

    def __init__(self, *, as_json: bool, away: str) -> None:
        self.stop: DtqError | None = None
        self._away = away
        self._as_json = as_json
        self._submitted = 0
        self._duplicates = 0
        self._rejected = 0
        self._unknown = 0
        self._without_key = 0
        self._stopped_at: int | None = None
        self._is_held_up = False

    @property
    def exit_code(self) -> Exit:
        """What the command ends with."""
        if self.stop is not None:
            return exit_of(self.stop)
        if self._unknown:
            return Exit.FAILED
        return Exit.REJECTED if self._rejected else Exit.DONE

    @contextmanager
    def under_way(self, number: int) -> Iterator[None]:
        """Count *number* lines as unknown where the block is interrupted."""
        self._unknown += number
        yield
        self._unknown -= number

    def tell(self, line: int, answer: Answer, *, has_key: bool) -> None:
        """Count what was answered to a line for good, and tell of it."""
        match answer:
            case Submitted(duplicate=False, task_id=task_id, task=task):
                self._submitted += 1
                self._without_key += not has_key
                self._taken(line, task_id, status=None if task is None else task.status)
            case Submitted(task_id=task_id, task=task):
                self._duplicates += 1
                self._taken(line, task_id, status=None if task is None else task.status, duplicate=True)
            case IdempotencyInProgress(task_id=task_id, status=status):
                # alone it is a conflict; here it means that an earlier run got so far
                self._duplicates += 1
                self._taken(line, task_id, status=status, duplicate=True)
            case _:
                self._refused(line, answer)

    def held_up(self, by: DtqError, *, at: int) -> None:
        """Tell people, once until things move again, why nothing moves."""
        if not (self._is_held_up or self._as_json):
            print_error(f"dtq: line {at}: {self._words(by)}; trying again")
        self._is_held_up = True

    def moved(self) -> None:
        """Take note that things move again."""
        self._is_held_up = False

    def stopped(self, by: DtqError, *, at: int) -> None:
        """Take note that no more lines are tried."""
        self.stop, self._stopped_at = by, at

    def end(self, *, is_whole: bool) -> None:
        """Tell how many lines went which way: programs on stderr, where no results of lines are."""
        summary = Summary(
            submitted=self._submitted,
            duplicates=self._duplicates,
            rejected=self._rejected,
            unknown=self._unknown,
            stopped_at=self._stopped_at,
        )
        if self._as_json:
            write_error_json(msgspec.json.encode(summary))
            return
        unknown = f", {self._unknown} may have been submitted or not" if self._unknown else ""
        print_line(f"{self._submitted} submitted, {self._duplicates} already there, {self._rejected} rejected{unknown}")
        if self.stop is not None:
            print_error(f"dtq: stopped at line {self._stopped_at}: {self._words(self.stop)}")
        if not is_whole and self._without_key:
            print_error(
                f"dtq: the same file again would submit {self._without_key} lines a second time, "
                "because they have no idempotency_key"
            )

    def _words(self, error: DtqError) -> str:
        return "; ".join(lines_of(error, away=self._away))

    def _taken(self, line: int, task_id: str, *, status: TaskStatus | None, duplicate: bool = False) -> None:
        if self._as_json:
            print_json_line(LineResult(line=line, task_id=task_id, status=status, duplicate=duplicate))

    def _refused(self, line: int, error: DtqError) -> None:
        if isinstance(error, OutcomeUnknown):
            self._unknown += 1
        else:
            self._rejected += 1
        if self._as_json:
            print_json_line({"line": line, **members_of(error)})
        else:
            for text in lines_of(error):
                print_error(f"dtq: line {line}: {text}")
