"""What may come along: submissions, JSON texts, outcomes, and instants of time."""

import json
from datetime import timedelta
from typing import Final

from hypothesis import strategies as st

from dtq.domain.admission import MAX_DELAY_S, MAX_TTL_S, TaskSpec
from dtq.domain.outcome import Outcome, Succeeded, failed
from dtq.domain.retry import LONGEST_DELAY, RetryPolicy
from dtq.domain.task import QueueName

MILLISECOND: Final = timedelta(milliseconds=1)

texts: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Any text that can be encoded."""
wild_texts: Final = st.text(st.characters(), max_size=20)
"""Any text at all, lone surrogates included."""

json_values: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects: Final = st.dictionaries(texts, json_values, max_size=4)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """An object as some client might have written it."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]))
    return json.dumps(draw(json_objects), ensure_ascii=draw(st.booleans()), separators=separators)


queues: Final = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,63}", fullmatch=True).map(QueueName)
task_types: Final = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}", fullmatch=True)
keys: Final = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200)
delays: Final = st.one_of(
    st.just(timedelta()),
    st.integers(1, 10_000).map(lambda count: count * MILLISECOND),
    st.integers(0, MAX_DELAY_S * 1000).map(lambda count: count * MILLISECOND),
)
times_to_live: Final = st.one_of(
    st.integers(1, 10_000).map(lambda count: count * MILLISECOND),
    st.integers(1, MAX_TTL_S * 1000).map(lambda count: count * MILLISECOND),
)

specs: Final = st.builds(
    TaskSpec,
    task_type=task_types,
    payload=json_texts(),
    queue=queues,
    idempotency_key=st.none() | keys,
    max_attempts=st.integers(1, 4) | st.integers(1, 100),
    priority=st.integers(0, 9),
    timeout=st.integers(1, 3_600_000).map(lambda count: count * MILLISECOND),
    delay=delays,
    metadata=json_texts(),
    ttl=st.none() | st.none() | times_to_live,
)

outcomes: Final[st.SearchStrategy[Outcome]] = st.one_of(
    st.builds(Succeeded, result=st.none() | json_texts(), truncated=st.booleans()),
    st.builds(failed, wild_texts, wild_texts, retryable=st.just(value=True)),
    st.builds(failed, wild_texts, wild_texts, retryable=st.just(value=False)),
)


@st.composite
def retry_policies(draw: st.DrawFn) -> RetryPolicy:
    base = draw(st.timedeltas(timedelta(microseconds=1), LONGEST_DELAY))
    maximum = draw(st.timedeltas(base, LONGEST_DELAY))
    return RetryPolicy(base=base, maximum=maximum, jitter=draw(st.floats(0, 1)))


passing_time: Final = st.one_of(
    st.integers(0, 3).map(lambda count: count * MILLISECOND),
    st.integers(0, 20_000).map(lambda count: count * MILLISECOND),
    st.integers(0, MAX_DELAY_S * 1000).map(lambda count: count * MILLISECOND),
)
