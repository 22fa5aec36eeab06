"""Which events somebody wants to hear."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from dtq.domain.admission import QUEUE_PATTERN, TASK_ID_PATTERN
from dtq.domain.errors import FieldProblem, InvalidRequest
from dtq.domain.events import Event, EventType
from dtq.domain.text import clean

MAX_VALUES: Final = 100
"""How many values one filter may name for one member."""

_MAX_PROBLEMS: Final = 20


class EventFilter(Struct, frozen=True, kw_only=True):
    """Lets pass what has one of the named values in each member that any are named for; without names, everything."""

    queues: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    task_ids: frozenset[str] = frozenset()

    def admits(self, event: Event) -> bool:
        """Tell whether *event* passes."""
        return (
            (not self.types or event.type in self.types)
            and (not self.queues or event.queue in self.queues)
            and (not self.task_ids or event.task_id in self.task_ids)
        )


EVERYTHING: Final = EventFilter()

_CHECKS: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    "queue": (QUEUE_PATTERN.fullmatch, f"must be the name of a queue ({QUEUE_PATTERN.pattern})"),
    "type": (frozenset[str](EventType).__contains__, f"must be one of {', '.join(EventType)}"),
    "task_id": (TASK_ID_PATTERN.fullmatch, "must be a task id: 32 hexadecimal digits in lower case"),
}

PARAMETERS: Final = tuple(_CHECKS)
"""The members that a filter can name values for."""


def event_filter(named: Iterable[tuple[str, str]]) -> EventFilter:
    """Read a filter from pairs of a member's name and a value, in any order. Raises InvalidRequest with every fault."""
    problems: list[FieldProblem] = []
    # repeats count too: what was asked for is to be as short as the limit says
    found: dict[str, list[str]] = {name: [] for name in PARAMETERS}
    for name, value in named:
        if name not in found:
            problems.append(FieldProblem(clean(name, limit=100), f"unknown; known are {', '.join(PARAMETERS)}"))
            continue
        check, allowed = _CHECKS[name]
        if check(value):
            found[name].append(value)
        else:
            problems.append(FieldProblem(name, f"{clean(value, limit=100)!r} {allowed}"))
    problems += [
        FieldProblem(name, f"{len(values)} values; at most {MAX_VALUES} are allowed")
        for name, values in found.items()
        if len(values) > MAX_VALUES
    ]
    if problems:
        raise InvalidRequest(tuple(problems[:_MAX_PROBLEMS]))
    return EventFilter(
        queues=frozenset(found["queue"]), types=frozenset(found["type"]), task_ids=frozenset(found["task_id"])
    )
