"""What commit.lua makes of acts that no change of ours sends: what it remembers, and how much it takes."""

from collections.abc import Sequence

from dtq.adapters.redis.clock import RedisClock
from dtq.adapters.redis.envelope import MAX_ACTS, Answered, Envelope, among, below, together, unless_just_run
from dtq.adapters.redis.scripts import COMMIT, Scripts
from tests.adapters.redis.schema import Schema


async def made(schema: Schema, envelope: Envelope) -> Sequence[int]:
    """Have acts made, and return how each was answered."""
    scripts = Scripts(schema.client, clock=RedisClock())
    answers = await scripts.run(COMMIT, keys=envelope.keys, arguments=envelope.arguments())
    return [Answered.MADE if isinstance(answer, str) else answer[0] for answer in answers]


async def test_what_an_act_writes_the_next_one_reads(schema: Schema) -> None:
    envelope, name = Envelope(), f"{schema.prefix}:list"
    for text in "abc":
        key = envelope.key(name)
        step = (("SADD", key, envelope.text(text)),)
        envelope.add(guards=[below(2, [("SCARD", key)])], steps=[step])
    for _ in range(2):
        key = envelope.key(name)
        envelope.add(guards=[among(["1"], ("EXISTS", key))], steps=[(("DEL", key),)])

    answers = await made(schema, envelope)

    assert [Answered.MADE, Answered.MADE, Answered.REFUSED, Answered.MADE, Answered.REFUSED] == answers


async def test_two_commands_on_one_key_read_each_their_own(schema: Schema) -> None:
    envelope, name = Envelope(), f"{schema.prefix}:set"
    await schema.call("SADD", name, "a", "b")
    key = envelope.key(name)
    guards = [among(["1"], ("EXISTS", key)), among(["2"], ("SCARD", key)), among(["1"], ("EXISTS", key))]
    envelope.add(guards=guards, steps=[(("DEL", key),)])

    assert [Answered.MADE] == await made(schema, envelope)


async def test_the_guard_of_a_step_reads_what_the_steps_before_it_wrote(schema: Schema) -> None:
    envelope, name, other = Envelope(), f"{schema.prefix}:text", f"{schema.prefix}:other"
    key, second = envelope.key(name), envelope.key(other)
    is_there = among(["1"], ("EXISTS", key))
    envelope.add(
        guards=[among(["0"], ("EXISTS", key))],
        steps=[(("SET", key, "1"),), (("SET", second, "1"), is_there), (("DEL", key),), (("DEL", second), is_there)],
    )
    # what is read for the last act is not kept
    envelope.add(guards=[], steps=[(("TIME",),)])

    assert [Answered.MADE] * 2 == await made(schema, envelope)
    assert [0, 1] == [await schema.call("EXISTS", one) for one in (name, other)]


async def test_a_token_that_is_part_of_a_known_one_is_not_known(schema: Schema) -> None:
    name = f"{schema.prefix}:task:1"
    await schema.call("HSET", name, "version", "token-10", "tokens", "token-10 token-20")
    answers = list[int]()
    for token in ("token-1", "oken-20", "token-20"):
        envelope = Envelope()
        key = envelope.key(name)
        envelope.add(record=key, version="token-10", token=token, steps=[(("HSET", key, "seen", "1"),)])
        answers += await made(schema, envelope)

    assert [Answered.MADE, Answered.MADE, Answered.KNOWN] == answers


async def test_acts_of_any_size_arrive_whole(schema: Schema) -> None:
    fields = [text for number in range(80) for text in (f"field{number}", f"{number}")]
    envelope = Envelope()
    for number in range(MAX_ACTS):
        key = envelope.key(f"{schema.prefix}:task:{number}")
        words = envelope.fields([*fields, "own", f"{number}"])
        envelope.add(steps=[(("HSET", key, *words),)])

    assert [Answered.MADE] * MAX_ACTS == await made(schema, envelope)
    for number in (0, 47, 48, 49, MAX_ACTS - 1):
        stored = await schema.hash(f"{schema.prefix}:task:{number}")
        assert dict(zip(fields[::2], fields[1::2], strict=True)) | {"own": f"{number}"} == stored


def add_together(envelope: Envelope, *, own: str, key: str, member: str) -> None:
    """Add an act that writes a key of its own, and puts a member into one that it shares."""
    step = (("SET", envelope.key(own), "1"),)
    envelope.add(steps=[step, together(("SADD", envelope.key(key), envelope.text(member)), own=1)])


async def test_what_acts_share_is_done_for_all_of_them_when_they_are_made(schema: Schema) -> None:
    envelope, names = Envelope(), [f"{schema.prefix}:set:{number}" for number in range(2)]
    for number, name in enumerate([*names, *names]):
        add_together(envelope, own=f"{schema.prefix}:own:{number}", key=name, member=f"{number}")
    key = envelope.key(f"{schema.prefix}:last")
    nothing_is_there = [among(["0"], ("EXISTS", envelope.key(name))) for name in names]
    envelope.add(guards=nothing_is_there, steps=[(("SET", key, "1"),)])

    assert [Answered.MADE] * 5 == await made(schema, envelope)
    assert [{"0", "2"}, {"1", "3"}] == [set(await schema.call("SMEMBERS", name)) for name in names]


async def test_an_act_alone_does_itself_what_others_would_share(schema: Schema) -> None:
    envelope, name = Envelope(), f"{schema.prefix}:set"
    add_together(envelope, own=f"{schema.prefix}:own", key=name, member="a")

    assert [Answered.MADE] == await made(schema, envelope)
    assert ["a"] == await schema.call("SMEMBERS", name)


async def test_where_what_is_shared_is_refused_those_who_share_it_are_stopped(schema: Schema) -> None:
    envelope, good, spoiled = Envelope(), f"{schema.prefix}:good", f"{schema.prefix}:spoiled"
    await schema.call("SET", spoiled, "a stranger's")
    for number, name in enumerate([spoiled, good, spoiled, good]):
        add_together(envelope, own=f"{schema.prefix}:own:{number}", key=name, member=f"{number}")

    answers = await made(schema, envelope)

    assert [Answered.STOPPED, Answered.MADE, Answered.STOPPED, Answered.MADE] == answers
    assert {"1", "3"} == set(await schema.call("SMEMBERS", good))


async def test_what_was_run_for_the_act_before_is_not_run_again_and_counts_as_made(schema: Schema) -> None:
    envelope, name = Envelope(), f"{schema.prefix}:names"
    for number, field in enumerate(["a", "a", "a", "b", "b", "c"]):
        key, own = envelope.key(name), envelope.key(f"{schema.prefix}:own:{number}")
        counted = unless_just_run(("HINCRBY", key, envelope.text(field), "1"))
        envelope.add(guards=[below(2, [("HLEN", key)])], steps=[(("SET", own, "1"),), counted])

    answers = await made(schema, envelope)

    assert [*[Answered.MADE] * 4, Answered.REFUSED, Answered.REFUSED] == answers
    assert {"a": "1", "b": "1"} == await schema.hash(name)
