import json
from collections.abc import Mapping

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from dtq.domain.admission import FIELDS, RESERVED_METADATA, TaskSpec, admit
from dtq.domain.errors import FieldProblem, InvalidTask, PayloadTooLarge, UnknownTaskType
from dtq.domain.json_text import MAX_DEPTH, is_too_deep, object_problem
from tests.domain.factories import RULES
from tests.property.strategies import json_texts, json_values, keys, queues, wild_texts

anything = (
    json_values
    | wild_texts
    | json_texts()
    | st.floats()
    | st.integers(-(10**40), 10**40)
    | st.binary(max_size=5)
    | st.sampled_from(["echo_task", "{}", 0, 1, 5, True, '{"ttl_seconds":1}', '{"discarded":1}'])
)
submissions = st.dictionaries(st.sampled_from(FIELDS) | wild_texts, anything, max_size=12)

brackets = st.text('[]{}",:\\ a1', max_size=300)
nested_texts = st.integers(0, 200).flatmap(
    lambda depth: st.tuples(st.just("[" * depth), brackets, st.just("]" * depth)).map("".join)
)


@given(fields=submissions)
@example(fields={"task_type": "echo_task", "payload": "{}", "delay_seconds": 10**400})
def test_whatever_is_submitted_is_admitted_or_refused_with_reasons(fields: Mapping[str, object]) -> None:
    answer = answer_to(fields)

    if isinstance(answer, TaskSpec):
        assert set(fields) <= set(FIELDS)
    else:
        assert answer
        assert all(problem.field.isprintable() for problem in answer if problem.field.isascii())
        msgspec.json.encode(answer)


def answer_to(fields: Mapping[str, object]) -> TaskSpec | tuple[FieldProblem, ...]:
    try:
        return admit(fields, rules=RULES)
    except (InvalidTask, PayloadTooLarge, UnknownTaskType) as refusal:
        return refusal.problems


@given(
    payload=json_texts(),
    metadata=json_texts().filter(lambda text: not json.loads(text).keys() & {"ttl_seconds", *RESERVED_METADATA}),
    queue=queues,
    key=st.none() | keys,
    numbers=st.fixed_dictionaries(
        {},
        optional={
            "max_attempts": st.integers(1, 10),
            "priority": st.integers(0, 9),
            "timeout_ms": st.integers(1, 3_600_000),
            "delay_seconds": st.integers(0, 2_592_000) | st.floats(0, 2_592_000),
        },
    ),
)
def test_what_is_within_all_bounds_is_admitted_byte_by_byte(
    payload: str, metadata: str, queue: str, key: str | None, numbers: Mapping[str, int | float]
) -> None:
    fields = {"task_type": "echo_task", "queue": queue, "idempotency_key": key, **numbers}

    spec = admit({**fields, "payload": payload, "metadata": metadata}, rules=RULES)

    assert (payload, metadata) == (spec.payload, spec.metadata)
    assert (queue, key) == (spec.queue, spec.idempotency_key)


def spoiled(text: str) -> st.SearchStrategy[str]:
    """*text* with one character left out, doubled or replaced."""
    cuts = st.integers(0, len(text))
    return st.tuples(cuts, cuts, st.characters()).map(lambda cut: text[: cut[0]] + cut[2] + text[cut[1] :])


@given(text=st.one_of(wild_texts, brackets, nested_texts, json_texts().flatmap(spoiled)))
def test_an_accepted_text_is_one_object_for_every_reader(text: str) -> None:
    if object_problem(text) is None:
        value = json.loads(text)
        assert isinstance(value, dict)
        assert depth_of(value) <= MAX_DEPTH
        text.encode()


@given(text=json_texts() | nested_texts)
def test_the_depth_of_a_text_is_that_of_its_value(text: str) -> None:
    try:
        value = json.loads(text)
    except ValueError:
        return

    assert (depth_of(value) > MAX_DEPTH) == is_too_deep(text)


def depth_of(value: object) -> int:
    match value:
        case dict():
            return 1 + max(map(depth_of, value.values()), default=0)
        case list():
            return 1 + max(map(depth_of, value), default=0)
        case _:
            return 0
