"""A typed payload is read with little effort, whatever its numbers are, and as it always is."""

from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest
from msgspec import Struct

from dtq.adapters.system import SystemClock
from dtq.handlers.payload import PayloadInvalid, PayloadType

SLOW = "1e308"


class Inner(Struct):
    at: datetime
    by_number: dict[int, float] = {}


class Measured(Struct):
    values: list[float]
    inner: Inner | None = None
    data: bytes = b""


class Literal(Struct):
    value: Decimal
    rest: list[float] = []


class Nested(Struct):
    inner: list[Literal] = []
    own: "Nested | None" = None


class Kept(Struct):
    raw: msgspec.Raw
    values: list[float] = []


def test_numbers_that_are_almost_too_large_take_no_hundred_times_as_long_in_a_type() -> None:
    clock, declared = SystemClock(), PayloadType(Measured, owner="x")

    def fastest(number: str) -> float:
        text, times = f'{{"values": [{",".join([number] * 5_000)}]}}', []
        for _ in range(5):
            began_at = clock.monotonic()
            declared.read(text)
            times.append(clock.monotonic() - began_at)
        return min(times)

    # the plain parser takes 100 to 300 times as long
    assert fastest(SLOW) < 60 * fastest("1e288")


@pytest.mark.parametrize("number", [SLOW, "1.5"])
def test_beside_such_a_number_a_payload_is_read_as_ever(number: str) -> None:
    inner = '{"at": "2026-01-02T00:00:00Z", "by_number": {"1": 2.5}}'

    read = PayloadType(Measured, owner="x").read(f'{{"values": [{number}, 1], "inner": {inner}, "data": "/w=="}}')

    expected = Inner(at=datetime(2026, 1, 2, tzinfo=UTC), by_number={1: 2.5})
    assert Measured(values=[float(number), 1.0], inner=expected, data=b"\xff") == read


@pytest.mark.parametrize(
    ("rest", "field"),
    [('"inner": 5', "payload.inner"), ('"inner": {"at": 5.5}', "payload.inner.at"), ('"data": 1', "payload.data")],
)
def test_beside_such_a_number_a_fault_is_told_as_ever(rest: str, field: str) -> None:
    declared, told = PayloadType(Measured, owner="x"), []
    for number in (SLOW, "1.5"):
        with pytest.raises(PayloadInvalid) as caught:
            declared.read(f'{{"values": [{number}], {rest}}}')
        told.append(caught.value.problem)

    assert told[0] == told[1]
    assert field == told[0].field


def test_a_number_that_is_too_large_is_refused_in_a_type_too() -> None:
    with pytest.raises(PayloadInvalid, match="out of range"):
        PayloadType(Measured, owner="x").read(f'{{"values": [{SLOW}, 1e309]}}')


def test_what_is_made_of_the_text_itself_keeps_each_digit() -> None:
    digits = "1.100000000000000000000000000000001"

    read = PayloadType(Nested, owner="x").read(f'{{"inner": [{{"value": {digits}, "rest": [{SLOW}]}}]}}')
    kept = PayloadType(Kept, owner="x").read(f'{{"raw": {digits}, "values": [{SLOW}]}}')

    assert isinstance(read, Nested)
    assert isinstance(kept, Kept)
    assert (Decimal(digits), digits.encode()) == (read.inner[0].value, bytes(kept.raw))
