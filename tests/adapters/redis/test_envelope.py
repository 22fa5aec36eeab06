"""How many acts one script is given: it holds the server for as long as it runs."""

import pytest

from dtq.adapters.redis.envelope import MAX_ACTS, MAX_BYTES, Envelope, envelopes


def add(envelope: Envelope, text: str) -> None:
    envelope.add(steps=[(("SET", envelope.key("name"), envelope.text(text)),)])


@pytest.mark.parametrize(
    ("items", "sizes"),
    [
        (["x"] * (2 * MAX_ACTS + 1), [MAX_ACTS, MAX_ACTS, 1]),
        (["x" * (MAX_BYTES // 2)] * 3, [2, 1]),
        (["x" * (2 * MAX_BYTES)] * 2, [1, 1]),
        ([], []),
    ],
)
def test_an_envelope_takes_a_bounded_number_of_acts_and_bytes(items: list[str], sizes: list[int]) -> None:
    assert sizes == [len(envelope) for envelope, _ in envelopes(items, add)]
