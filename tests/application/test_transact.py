"""Decide, commit, decide again: bounded, and the same bytes where they are repeated."""

from collections.abc import Sequence

import pytest

from dtq.application.transact import MAX_REPEATS, Settled, Step, Vanished, transact
from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Drop, DropReason
from dtq.domain.errors import BrokerUnavailable, OutcomeUnknown
from dtq.domain.lifecycle import cancel
from dtq.domain.task import Task
from dtq.ports.answers import Already, Applied, Broken, CommitAnswer, Conflict, Refused
from tests.factories import NOW, OPERATOR, a_task, a_token


class Script:
    """A broker that answers as it is told, and remembers what it was sent."""

    def __init__(self, answers: Sequence[CommitAnswer | BrokerUnavailable]) -> None:
        self.answers = list(answers)
        self.sent: list[Change] = []

    async def commit(self, change: Change) -> CommitAnswer:
        self.sent.append(change)
        answer = self.answers.pop(0)
        if isinstance(answer, BrokerUnavailable):
            raise answer
        return answer


def decide(task: Task) -> Change | Drop:
    return cancel(task, now=NOW, token=a_token(), by=OPERATOR)


async def test_an_applied_change_is_returned_with_the_stored_task() -> None:
    task, stored = a_task(), a_task()
    script = Script([Applied(stored)])

    answer = await transact(task, decide=decide, commit=script.commit)

    assert Settled(change=script.sent[0], task=stored) == answer


@pytest.mark.parametrize("stored", [None, a_task()])
async def test_a_change_that_was_made_before_is_a_success(stored: Task | None) -> None:
    script = Script([Already(stored)])

    answer = await transact(a_task(), decide=decide, commit=script.commit)

    assert Settled(change=script.sent[0], task=stored or script.sent[0].after) == answer


async def test_a_conflict_is_decided_again_from_what_is_there_under_a_new_token() -> None:
    first, second = a_task(), a_task()
    script = Script([Conflict(second), Applied(second)])

    await transact(first, decide=decide, commit=script.commit)

    assert [first, second] == [change.before for change in script.sent]
    assert script.sent[0].after.version != script.sent[1].after.version


async def test_a_task_that_never_stands_still_is_given_up_after_five_decisions() -> None:
    script = Script([Conflict(a_task()) for _ in range(9)])

    with pytest.raises(BrokerUnavailable):
        await transact(a_task(), decide=decide, commit=script.commit)

    assert 5 == len(script.sent)


async def test_a_step_that_stopped_half_way_is_repeated_under_its_token() -> None:
    script = Script([Broken("half-way"), Broken("half-way"), Applied(a_task())])

    await transact(a_task(), decide=decide, commit=script.commit)

    assert 3 == len(script.sent)
    assert 1 == len({change.after.version for change in script.sent})


async def test_a_step_that_always_stops_half_way_is_given_up_as_unknown() -> None:
    script = Script([Broken("half-way")] * 9)

    with pytest.raises(OutcomeUnknown):
        await transact(a_task(), decide=decide, commit=script.commit)

    assert 5 == len(script.sent)


async def test_what_is_no_change_is_returned_and_nothing_is_sent() -> None:
    script = Script([])

    def refuse(_: Task) -> Change | Drop:
        return Drop(DropReason.ENDED)

    assert Drop(DropReason.ENDED) == await transact(a_task(), decide=refuse, commit=script.commit)
    assert [] == script.sent


async def test_a_refusal_is_the_callers_to_judge() -> None:
    refused = Refused(requirement=Requirement.UNDELIVERED, task=None)

    assert refused == await transact(a_task(), decide=decide, commit=Script([refused]).commit)


async def test_a_task_that_is_gone_is_said_to_be_gone() -> None:
    assert Vanished() == await transact(a_task(), decide=decide, commit=Script([Conflict(None)]).commit)


@pytest.mark.parametrize(("before", "expected"), [([], BrokerUnavailable), ([Broken("half-way")], OutcomeUnknown)])
async def test_what_cannot_be_repeated_is_unknown_only_where_it_stopped_half_way(
    before: list[CommitAnswer], expected: type[BrokerUnavailable]
) -> None:
    script = Script([*before, BrokerUnavailable("gone")])

    with pytest.raises(BrokerUnavailable) as caught:
        await transact(a_task(), decide=decide, commit=script.commit)

    assert expected is type(caught.value)


def test_each_decision_has_repeats_of_its_own() -> None:
    step = Step(a_task())
    for _ in range(2):
        change = decide(step.task)
        assert isinstance(change, Change)
        step.decided(change)
        for _ in range(MAX_REPEATS - 1):
            assert step.hear(Broken("half-way"), change=change) is None
        assert step.hear(Conflict(a_task()), change=change) is None
