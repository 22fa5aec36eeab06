"""What each stored name is for, read back from the name: the reverse of Keyspace."""

import re
from typing import Final

from msgspec import Struct

from dtq.adapters.redis.keys import Keyspace
from dtq.domain.admission import KEY_PATTERN, QUEUE_PATTERN
from dtq.domain.facts import Role
from dtq.domain.task import QueueName, TaskId, WorkerId

STREAM: Final = "stream"
_QUEUE: Final = QUEUE_PATTERN.pattern
FAMILIES: Final = tuple(
    (re.compile(pattern, re.DOTALL), role, kind)
    for pattern, role, kind in (
        (r"task:(?P<task>[0-9a-f]{32})", Role.TASK, "hash"),
        (r"result:(?P<result>[0-9a-f]{32})", Role.RESULT, "string"),
        (rf"idempotency:(?P<queue>{_QUEUE}):(?P<key>{KEY_PATTERN.pattern})", Role.KEY, "string"),
        (r"worker:(?P<worker>[A-Za-z0-9_-]{1,64})", Role.HEARTBEAT, "hash"),
        (r"lock:scheduler", Role.LOCK, "string"),
        (re.escape(Keyspace("").cancelled.removeprefix(":")), Role.MARKS, "set"),
        (rf"stream:(?P<queue>{_QUEUE}):p[0-9]", Role.BOUNDED, STREAM),
        (rf"queue:(?P<queue>{_QUEUE}):paused", Role.BOUNDED, "string"),
        (r"stream:(dead-letter|audit)", Role.BOUNDED, STREAM),
        (r"retry:(schedule|claimed)|tasks:recent", Role.BOUNDED, "zset"),
        (r"queues", Role.BOUNDED, "hash"),
        (r"workers", Role.BOUNDED, "set"),
        (r"(op|demo|scratch):.*", Role.HANDLERS, ""),
    )
)
"""The names without their prefix, what they are for, and of which type they are; '' where that is somebody else's."""


class Name(Struct, frozen=True, kw_only=True):
    """A stored name and what it says of itself."""

    text: str
    role: Role
    kind: str = ""
    task_id: TaskId | None = None
    result_of: TaskId | None = None
    queue: QueueName | None = None
    key: str | None = None
    worker: WorkerId | None = None


def name_of(keys: Keyspace, text: str) -> Name:
    """Read a stored name."""
    rest = text.removeprefix(f"{keys.prefix}:")
    for pattern, role, kind in FAMILIES:
        found = pattern.fullmatch(rest)
        if found is not None:
            parts = found.groupdict()
            return Name(
                text=text,
                role=role,
                kind=kind,
                task_id=None if "task" not in parts else TaskId(parts["task"]),
                result_of=None if "result" not in parts else TaskId(parts["result"]),
                queue=None if "queue" not in parts else QueueName(parts["queue"]),
                key=parts.get("key"),
                worker=None if "worker" not in parts else WorkerId(parts["worker"]),
            )
    return Name(text=text, role=Role.FOREIGN)
