"""C19: work that lies about is taken as soon as somebody can."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from dtq.domain.change import Requirement
from dtq.domain.task import QueueName, Receipt, TaskId
from dtq.ports.answers import Conflict, Refused
from dtq.ports.broker import Fetch
from tests.simulation.checkers.finding import Finding
from tests.simulation.checkers.operators import pauses_of
from tests.simulation.history import Execution, History, Life, PortCall

SETTLED: Final = 1.5
"""How many seconds a worker that is well takes at most to start, or hand back, what it was given."""

ANSWER_WITHIN: Final = 4.0
"""After how many seconds a worker at last finds out that a reply is lost."""

ON_ITS_WAY: Final = 15.0
"""How long something may still be under way, or make others hold back, after what has delayed it is over."""

OF_ALL: Final = frozenset({"server", "everybody"})

_GIVES: Final = frozenset({"fetch", "wait"})
_MOVES: Final = frozenset({"fetch", "commit", "acknowledge", "bury", "release", "drop"})


class Spell(Struct, frozen=True):
    """A time in which something is wrong with one process, or with all."""

    since: float
    until: float
    whom: str


def c19_promptness(history: History) -> Iterator[Finding]:
    """What a worker was given is started, run or handed back at once; what is handed back is taken by who has room."""
    if history.wiped_at is not None:
        return
    spells = list(_spells(history))
    moves = _moves(history)
    lost = {(fault.at, fault.whom) for fault in history.faults if fault.what.startswith("trap_unanswered at")}
    for call in history.calls:
        if call.method in _GIVES:
            yield from _given(history, call, spells, moves, is_lost=(call.at, call.who) in lost)
        elif call.method == "release" and call.answer:
            yield from _handed_back(history, call, spells, moves)


def _given(
    history: History,
    call: PortCall,
    spells: Sequence[Spell],
    moves: Mapping[Receipt, Sequence[float]],
    *,
    is_lost: bool,
) -> Iterator[Finding]:
    until = call.at + SETTLED + ANSWER_WITHIN * is_lost
    if is_lost and call.method == "wait":
        # a read that blocks is given up only when it is long too late
        return
    if not _is_well(spells, call.who, since=call.at, until=until, but=call.at if is_lost else None):
        return
    if _is_blocked(history, call.who, until) or not _lives(history, call.who, until):
        return
    begun = _begun(call.answer)
    for receipt in _receipts(call.answer):
        runs = (one.at for one in history.executions if one.task_id == begun.get(receipt))
        if not any(call.at < at <= until for at in (*moves.get(receipt, ()), *runs)):
            yield Finding("C19", None, f"{call.who} was given {receipt} at {call.at:.3f} s, and sits on it")


def _handed_back(
    history: History, call: PortCall, spells: Sequence[Spell], moves: Mapping[Receipt, Sequence[float]]
) -> Iterator[Finding]:
    # whoever was not told of it looks by itself each quarter of the visibility timeout
    until = call.at + history.terms.visibility.total_seconds() / 4 + SETTLED
    for receipt in call.arguments[0]:
        if any(call.at < at <= until for at in moves.get(receipt, ())):
            continue
        if _is_paused(history, receipt.queue, since=call.at, until=until):
            continue
        for life in history.lives:
            may_take = life.queue == receipt.queue and life.at < call.at - SETTLED and life.leaves_at > until
            is_well = may_take and _is_well(spells, life.who, since=call.at, until=until)
            if is_well and _has_room(history, life, since=call.at, until=until):
                yield Finding("C19", None, f"{receipt} is handed back at {call.at:.3f} s, {life.who} has room")


def _spells(history: History) -> Iterator[Spell]:
    for fault in history.faults:
        if fault.what.startswith("end of"):
            continue
        ends = (one.at for one in history.faults if one.whom == fault.whom and one.what == f"end of {fault.what}")
        until = next((at for at in ends if at >= fault.at), float("inf"))
        is_of_all = fault.whom in OF_ALL or fault.what.startswith("clock")
        yield Spell(fault.at, until + ON_ITS_WAY, "" if is_of_all else fault.whom)


def _is_well(spells: Sequence[Spell], who: str, *, since: float, until: float, but: float | None = None) -> bool:
    """Tell whether nothing is wrong with *who*, in neither of its threads, but for what began at the moment *but*."""
    own = {"", who, f"{who}b", who.removesuffix("b")}
    return not any(
        spell.whom in own and spell.since <= until and spell.until >= since and spell.since != but for spell in spells
    )


def _is_blocked(history: History, who: str, until: float) -> bool:
    return any(one.who == who and one.kind == "block" and one.at <= until for one in history.executions)


def _lives(history: History, who: str, until: float) -> bool:
    return any(life.who == who and life.leaves_at > until for life in history.lives)


def _receipts(answer: object) -> list[Receipt]:
    if isinstance(answer, Fetch):
        return [one.receipt for one in answer.deliveries]
    return list(answer) if isinstance(answer, Sequence) else []


def _begun(answer: object) -> Mapping[Receipt, TaskId]:
    """Return the tasks that a fetch has started, which are to run."""
    told = answer.deliveries if isinstance(answer, Fetch) else ()
    return {one.receipt: one.started.after.task_id for one in told if one.started is not None}


def _moves(history: History) -> Mapping[Receipt, Sequence[float]]:
    """When something happened to each entry."""
    moves: dict[Receipt, list[float]] = defaultdict(list)
    for call in history.calls:
        if call.method not in _MOVES:
            continue
        if call.method == "fetch":
            touched = _receipts(call.answer)
        elif call.method in {"release", "drop"}:
            touched = list(call.arguments[0])
        elif call.method == "commit":
            touched = list(_changed(call))
        else:
            touched = [call.arguments[0].receipt]
        for receipt in touched:
            moves[receipt].append(call.at)
    return moves


def _changed(call: PortCall) -> Iterator[Receipt]:
    answers = call.answer if isinstance(call.answer, Sequence) else ()
    for change, answer in zip(call.arguments[0], answers, strict=False):
        # whoever hears that its queue is paused has to hand it back, and whoever is overtaken to look at it again
        is_paused = isinstance(answer, Refused) and answer.requirement is Requirement.UNPAUSED
        is_open = is_paused or isinstance(answer, Conflict)
        if change.before and change.before.receipt and not is_open:
            yield change.before.receipt


def _is_paused(history: History, queue: QueueName, *, since: float, until: float) -> bool:
    spans = pauses_of(history).get(queue, ())
    return any(paused <= until and resumed + SETTLED >= since for paused, resumed in spans)


def _has_room(history: History, life: Life, *, since: float, until: float) -> bool:
    """Tell whether a worker had an empty slot all the time."""
    ran = [one for one in history.executions if one.who == life.who and _overlaps(one, since=since, until=until)]
    return len(ran) < life.concurrency and not any(one.kind == "block" for one in ran)


def _overlaps(execution: Execution, *, since: float, until: float) -> bool:
    # a slot is taken a moment before its handler begins, and is free a moment after it ends
    ended_at = float("inf") if execution.ended_at is None else execution.ended_at + SETTLED
    return execution.at - SETTLED <= until and ended_at >= since
