"""What commit.lua makes of acts that no change of ours sends: what it remembers, and how much it takes."""

from collections.abc import Sequence

from dtq.adapters.redis.clock import RedisClock
from dtq.adapters.redis.codec import SNAPSHOT_NAMES
from dtq.adapters.redis.envelope import MAX_ACTS, Answered, Envelope, among, below
from dtq.adapters.redis.scripts import COMMIT, Scripts
from tests.adapters.redis.schema import Schema


async def made(schema: Schema, envelope: Envelope) -> Sequence[int]:
    """Have acts made, and return how each was answered."""
    scripts = Scripts(schema.client, clock=RedisClock())
    answers = await scripts.run(COMMIT, keys=envelope.keys, arguments=envelope.arguments(SNAPSHOT_NAMES))
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

    assert [Answered.MADE] == await made(schema, envelope)
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
