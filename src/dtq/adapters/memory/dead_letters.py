"""The dead letters, in memory."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from dtq.adapters.memory.state import State
from dtq.domain.audit import AuditEntry
from dtq.domain.entry import revive
from dtq.domain.task import EntryId, TaskId
from dtq.ports.dead_letters import DeadLetter


class MemoryDeadLetters:
    """Dead letters in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def get(self, task_id: TaskId) -> DeadLetter | None:
        for entry_id, fields in reversed(self._state.letters.entries.items()):
            if fields.get("task_id") == task_id:
                letter = self._letter(entry_id, fields)
                if letter is not None:
                    return letter
        return None

    async def recent(self, *, limit: int) -> Sequence[DeadLetter]:
        found: list[DeadLetter] = []
        for entry_id, fields in reversed(self._state.letters.entries.items()):
            letter = self._letter(entry_id, fields)
            if letter is not None:
                found.append(letter)
            if len(found) == limit:
                break
        return found

    async def count(self) -> int:
        return len(self._state.letters.entries)

    async def purge(self, *, audit: AuditEntry) -> int:
        letters = list(self._state.letters.entries)
        for entry_id in letters:
            self._state.letters.remove(entry_id)
        self._state.audit.append(replace(audit, count=len(letters)))
        return len(letters)

    def _letter(self, entry_id: EntryId, fields: Mapping[str, str]) -> DeadLetter | None:
        task = self._state.task(TaskId(fields.get("task_id", "")))
        if task is None:
            return DeadLetter(entry_id=entry_id, fields=fields, task=revive(fields, dlq_entry_id=entry_id))
        return DeadLetter(entry_id=entry_id, fields=fields, task=task) if task.dlq_entry_id == entry_id else None
