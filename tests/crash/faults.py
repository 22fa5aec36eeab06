"""The faults of the matrix, each brought about at one step exactly."""

import re
from collections.abc import Callable, Sequence

from tests.crash import wire
from tests.crash.cells import Fault, Outcome, Point
from tests.crash.ground import WITHIN_S, Case, Ground
from tests.judged.system import Worker
from tests.judged.waiting import wait_until
from tests.servers.proxy import Trap

DENIALS_OF_A_TASK = 4
"""A step that stops half-way is sent five times in all: the fifth is to succeed."""

REFUSALS = (b"NOPERM", b"can't run this command")
"""How servers say inside and outside of a script that a user may not do this."""

ID = re.compile("[0-9a-f]{32}")
BAND = re.compile(r":p[0-9]$")

Denial = Callable[[wire.Request], Sequence[str]]
"""From a request that is held to the rules that let the server refuse it."""


def strike(ground: Ground, point: Point, fault: Fault) -> None:
    """Let *fault* happen at the step; afterwards the line and the rules are whole again."""
    match fault:
        case Fault.NONE:
            _lead(ground, point, ground.line.watch(point.word))
        case Fault.KILLED_BEFORE | Fault.KILLED_AFTER:
            stop = ground.line.stop_before if fault is Fault.KILLED_BEFORE else ground.line.stop_after
            _lead(ground, point, stop(point.word))
            ground.kill_actor()
        case Fault.REQUEST_LOST:
            _lead(ground, point, ground.line.drop_requests(word=point.word))
        case Fault.REPLY_LOST:
            _lead(ground, point, ground.line.drop_replies(word=point.word))
        case Fault.COMMANDS_DENIED:
            _deny(ground, point, fault, [_without(command) for command in sorted(point.commands)])
        case Fault.KEYS_DENIED:
            _deny(ground, point, fault, None)


def settle(ground: Ground, point: Point, outcome: Outcome) -> None:
    """Let clients ask again, time pass if it must, and a worker do what is left."""
    for case in ground.cases:
        if case.call is not None:
            ground.ask_until_answered(case)
    if ground.has_actor and (point.scene.leaves or outcome.takes_over):
        ground.retire_actor()
    workers = [one for one in ground.system.programs if isinstance(one, Worker)]
    for worker in workers:
        if not worker.alive() and outcome.takes_over:
            ground.let_pass(worker)
    if not any(worker.alive() for worker in workers):
        ground.let_lead_pass()
        ground.healthy_worker()
    ground.open_gates()
    for case in ground.cases:
        ground.ended(case)


def caught(ground: Ground, point: Point) -> wire.Request:
    """Let the step happen, and return the request that makes it."""
    trap = ground.line.watch(point.word)
    _lead(ground, point, trap)
    return wire.read(trap.message)


def _lead(ground: Ground, point: Point, trap: Trap) -> Case:
    case = point.scene.lead(ground)
    trap.wait(WITHIN_S)
    return case


def _deny(ground: Ground, point: Point, fault: Fault, denials: list[Denial] | None) -> None:
    """Let the server refuse the step, once for each denial; without any, once for each family of its keys."""
    while denials is None or denials:
        trap = ground.line.stop_before(point.word)
        case = _lead(ground, point, trap)
        if denials is None:
            denials = [
                _out_of_reach(family) for family in sorted({_family(key) for key in wire.read(trap.message).keys})
            ]
        for denial in denials[: 1 if point.is_single else DENIALS_OF_A_TASK]:
            denials.remove(denial)
            repeat = _refused(ground, point, case, trap, rules=denial(wire.read(trap.message)))
            if repeat is None:
                break
            trap = repeat
        ground.line.heal()
        if point.scene.leaves or point.is_single:
            settle(ground, point, point.outcomes[fault])
            ground.dismiss_healthy_worker()


def _refused(ground: Ground, point: Point, case: Case, held: Trap, *, rules: Sequence[str]) -> Trap | None:
    """Let a request that is held be refused; return the trap that holds its repeat, None where there will be none."""
    repeat = ground.line.stop_before(point.word)
    ground.change_rules(*rules)
    ground.line.release()
    reply = held.wait_for_reply(WITHIN_S)
    ground.allow_all()
    assert any(word in reply for word in REFUSALS), f"{rules} did not matter: {reply!r}"
    if point.scene.leaves or point.is_single:
        return None

    def is_over() -> bool:
        if case.call is not None and case.call.done():
            # the API gave up: its client asks again
            ground.answered(case)
            ground.ask(case, api=ground.serving_actor())
        return repeat.sprung

    wait_until(is_over, within=WITHIN_S, what=f"the step is repeated after {rules}")
    return repeat


def _without(command: str) -> Denial:
    return lambda _: [f"-{command}"]


def _out_of_reach(family: str) -> Denial:
    return lambda request: ["resetkeys", *(f"~{key}" for key in request.keys if _family(key) != family)]


def _family(key: str) -> str:
    return BAND.sub(":p*", ID.sub("*", key))
