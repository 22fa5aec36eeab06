"""What a user must be permitted, and what becomes of a change when a permission is taken away in the middle of work."""

import re
from collections.abc import AsyncIterator
from importlib.resources import files

import pytest

from dtq.adapters.redis.client import Client
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.trials import needs, rule_of
from dtq.domain.change import Change
from dtq.domain.errors import BrokerRefused
from dtq.ports.answers import Applied, Broken
from dtq.ports.backend import BackendOptions
from tests.adapters.redis.sent import new_forms, sent
from tests.contract.kinds import KINDS, prepared
from tests.contract.redis_harness import RedisHarness, open_restricted_harness
from tests.contract.steps import LEADER, held_lease, now, run, seconds, submit, write
from tests.factories import QUEUE, WORKER, an_audit_entry, an_event
from tests.servers import RedisServer

SENT = re.compile(r"""(?<!frozenset)(?:\(|\{|, )["']([A-Z]{3,})["'](?:, ["']([A-Z]+)["'])?""")
OUT_OF_REACH = "(?i)no permissions to access (one of the keys|a key)"
NO_COMMANDS = {"WITHSCORES", "MATCH", "COUNT", "LIMIT", "MAXLEN", "JUSTID", "IDLE", "STREAMS", "GROUP", "MKSTREAM"}
NO_COMMANDS |= {"NOPERM", "ERR", "NOGROUP", "MOVED", "BLOCK", "FORCE"}
OF_THE_DOCTOR = {"type", "pttl", "xinfo|stream", "xgroup|setid", "persist"}
"""What an examination alone sends; it says what it was not permitted to look at, and nothing else needs them."""


def _sent() -> set[str]:
    """Read from the source which commands the adapter sends; client.py sends what it is given, and names errors."""
    root = files("dtq.adapters.redis")
    sources = [one for folder in (root, root / "lua") for one in folder.iterdir() if one.name.endswith((".py", ".lua"))]
    found = [
        words
        for one in sources
        if one.name not in {"trials.py", "client.py"}
        for words in SENT.findall(one.read_text("utf-8"))
    ]
    return {rule_of(words) for words in found if words[0] not in NO_COMMANDS}


def test_every_command_that_is_sent_is_asked_for() -> None:
    asked_for = {rule_of(command) for command in needs(Keyspace("dtq")).values()}

    sent = _sent()

    assert sent - asked_for == OF_THE_DOCTOR
    assert {"hset", "xadd", "xgroup|create", "evalsha", "subscribe", "ping", "zrangebyscore"} <= sent


class User:
    """A harness whose adapter is a user with exactly the needed rules, which a test may change."""

    def __init__(self, harness: RedisHarness, client: Client) -> None:
        self.harness = harness
        self.prefix = harness.options.key_prefix
        self._client = client

    async def change(self, *rules: str) -> None:
        await self._client.call("ACL", "SETUSER", self.prefix, *rules)

    async def everything(self) -> dict[str, str]:
        """Read every key of the user, as one short text each."""
        dump = "return redis.sha1hex(redis.call('DUMP', KEYS[1]))"
        names = await self._client.call("KEYS", f"{self.prefix}:*")
        return {name: await self._client.call("EVAL", dump, 1, name) for name in names}


@pytest.fixture
async def user(redis_server: RedisServer) -> AsyncIterator[User]:
    client = Client(redis_server.url, timeout=BackendOptions().call_timeout)
    async with open_restricted_harness(options=BackendOptions(), server=redis_server) as harness:
        yield User(harness, client)
    await client.close()


async def test_a_user_who_may_do_what_is_asked_for_can_begin(user: User) -> None:
    await user.harness.backend.server.prepare()

    assert () == (await user.harness.backend.server.inspect()).problems


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ("-pexpire", "pexpire"),
        ("-xgroup|delconsumer", "xgroup|delconsumer"),
        ("-subscribe", "subscribe"),
        ("resetchannels", "publish"),
        ("-evalsha", "evalsha"),
    ],
)
async def test_what_is_forbidden_later_is_a_problem_by_name(user: User, rule: str, named: str) -> None:
    await user.harness.backend.server.prepare()
    await user.change(rule)

    (problem,) = (await user.harness.backend.server.inspect()).problems

    assert re.search(rf"(?<![\w|]){re.escape(named)}(?![\w|])", problem)


async def test_keys_and_channels_that_are_out_of_reach_are_named(user: User) -> None:
    few = [f"~{user.prefix}:scratch:*", f"~{user.prefix}:[i-z]*", f"&{user.prefix}:scratch:*"]
    await user.change("resetkeys", "resetchannels", *few)

    (problem,) = (await user.harness.backend.server.inspect()).problems

    assert f"channel {user.prefix}:events" in problem
    assert f"key {user.prefix}:cancelled" in problem
    assert f"key {user.prefix}:queues" not in problem
    assert "hset" not in problem


def _writes(harness: RedisHarness, change: Change) -> set[str]:
    """The commands of a change's steps, and those that decide whether one of them is left out."""
    act = sent(change, forms=new_forms(harness.options))
    reads = [command for guard in act.own_guards for command in guard[2:]]
    return {str(command[0]).lower() for command in [*act.steps, *reads]}


def _keys(harness: RedisHarness, change: Change) -> set[str]:
    return sent(change, forms=new_forms(harness.options)).keys


@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_that_may_not_be_made_whole_is_not_begun(user: User, kind: str) -> None:
    change = await prepared(user.harness, kind)
    before = await user.everything()
    writes = _writes(user.harness, change)

    for command in writes:
        await user.change(f"-{command}")
        answer = await write(user.harness, change)
        await user.change(f"+{command}")

        assert isinstance(answer, Broken)
        assert f"may not run {command}" in answer.reason
        assert before == await user.everything()

    assert len(writes) > 1
    assert isinstance(await write(user.harness, change), Applied)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_that_may_not_touch_one_of_its_keys_is_not_begun(user: User, kind: str) -> None:
    change = await prepared(user.harness, kind)
    before = await user.everything()
    keys = Keyspace(user.prefix)
    named = _keys(user.harness, change)

    for one in named - {keys.events}:
        await user.change("resetkeys", *(f"~{name}" for name in named if name != one))
        with pytest.raises(BrokerRefused, match=OUT_OF_REACH):
            await write(user.harness, change)
        await user.change(f"~{user.prefix}:*")

        assert before == await user.everything()

    assert len(named) > 1
    assert isinstance(await write(user.harness, change), Applied)


@pytest.mark.parametrize("access", ["%R", "%W"])
async def test_a_key_that_may_be_read_or_written_only_is_out_of_reach(user: User, access: str) -> None:
    change = await prepared(user.harness, "succeed")
    before = await user.everything()
    named = _keys(user.harness, change)
    one = Keyspace(user.prefix).task(change.after.task_id)

    await user.change("resetkeys", f"{access}~{one}", *(f"~{name}" for name in named if name != one))
    with pytest.raises(BrokerRefused, match=OUT_OF_REACH):
        await write(user.harness, change)

    assert before == await user.everything()


async def test_a_channel_out_of_reach_stops_a_change_before_it_is_begun(user: User) -> None:
    change = await prepared(user.harness, "succeed")
    before = await user.everything()
    await user.change("resetchannels")

    answer = await write(user.harness, change)

    assert isinstance(answer, Broken)
    assert "may not run publish" in answer.reason
    assert before == await user.everything()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_whose_time_may_not_be_told_is_not_made(user: User, kind: str) -> None:
    change = await prepared(user.harness, kind)
    before = await user.everything()
    await user.change("-time")

    with pytest.raises(BrokerRefused):
        await write(user.harness, change)

    assert before == await user.everything()


async def test_nothing_is_read_or_taken_where_the_time_may_not_be_told(user: User) -> None:
    await submit(user.harness)
    await submit(user.harness, delay=seconds(0.001))
    assert await user.harness.backend.leadership.acquire(LEADER, term=seconds(10))
    before = await user.everything()
    await user.change("-time")
    broker = user.harness.backend.broker

    with pytest.raises(BrokerRefused):
        await broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)
    with pytest.raises(BrokerRefused):
        await broker.take_due(now=now(user.harness) + seconds(1), leader=LEADER, limit=1)

    assert before == await user.everything()


@pytest.mark.parametrize("command", ["hmget", "xclaim"])
async def test_a_lease_that_may_not_be_extended_counts_neither_as_kept_nor_as_lost(user: User, command: str) -> None:
    leases = [held_lease(await run(user.harness))]
    broker = user.harness.backend.broker
    await user.change(f"-{command}")

    with pytest.raises(BrokerRefused):
        await broker.extend(leases, worker=WORKER)

    await user.change(f"+{command}")
    assert [True] == [report.kept for report in await broker.extend(leases, worker=WORKER)]


async def test_a_guard_that_may_not_be_read_stops_the_change(user: User) -> None:
    change = await prepared(user.harness, "start")
    await user.change("-xpending")

    assert isinstance(await write(user.harness, change), Broken)

    await user.change("+xpending")
    assert isinstance(await write(user.harness, change), Applied)


async def test_one_change_of_many_is_refused_by_itself(user: User) -> None:
    cancel = await prepared(user.harness, "cancel_queued")
    discard = await prepared(user.harness, "discard", key="other")
    await user.change("-sadd")

    first, second = await user.harness.backend.broker.commit([cancel, discard])

    assert [Broken, Applied] == [type(first), type(second)]


async def test_an_act_that_may_not_be_made_whole_is_not_begun_and_says_so(user: User) -> None:
    queues = user.harness.backend.queues
    await user.change("-xadd")

    with pytest.raises(BrokerRefused, match="may not run xadd"):
        await queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    assert not (await queues.stats(QUEUE)).paused
