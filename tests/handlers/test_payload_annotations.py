"""Annotations that are text and cannot be evaluated are faults of the declaration, told by its task type."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import Struct

from dtq.handlers import Registry, TaskContext, task
from dtq.handlers.payload import PayloadTypeError


class Order(Struct):
    number: int


UNREADABLE = {
    "Order.Missing": "AttributeError",
    "Order + 1": "TypeError",
    "Order +": "SyntaxError",
    "{}['Order']": "KeyError",
    "1 / 0": "ZeroDivisionError",
    "Nowhere": "NameError",
}


def a_handler_of(annotation: Any) -> Callable[..., object]:
    def function(payload: Any, ctx: TaskContext) -> object:
        return payload, ctx

    function.__annotations__["payload"] = annotation
    return task("wrong")(function)


@pytest.mark.parametrize(("annotation", "reason"), UNREADABLE.items())
def test_an_annotation_that_cannot_be_evaluated_is_refused_with_its_reason(annotation: str, reason: str) -> None:
    with pytest.raises(PayloadTypeError, match=rf"task type 'wrong': .* cannot be resolved \({reason}: "):
        Registry.of(a_handler_of(annotation))


@pytest.mark.parametrize("annotation", UNREADABLE)
def test_a_field_whose_annotation_cannot_be_evaluated_is_refused_too(annotation: str) -> None:
    @dataclass
    class Outer:
        inner: Any

    Outer.__annotations__["inner"] = annotation

    with pytest.raises(PayloadTypeError, match=r"task type 'wrong': .* is no payload type"):
        Registry.of(a_handler_of(Outer))
    with pytest.raises(PayloadTypeError, match=r"task type 'wrong': .* is no payload type"):
        Registry.of(task("wrong", payload=Outer)(lambda payload, ctx: (payload, ctx)))
