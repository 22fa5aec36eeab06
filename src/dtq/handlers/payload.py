"""What a handler declares its payload to be: read from JSON text, judged, and published as JSON Schema."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, get_type_hints

import msgspec
from msgspec.inspect import (
    CustomType,
    DataclassType,
    DecimalType,
    RawType,
    StructType,
    TypedDictType,
    UnionType,
    type_info,
)

from dtq.domain.errors import FieldProblem
from dtq.domain.json_text import has_slow_numbers, parse, parse_object
from dtq.domain.text import class_name, clean, text_of

JsonSchema = dict[str, Any]

_OBJECTS: Final = (StructType, TypedDictType, DataclassType)
_LITERAL: Final = (RawType, DecimalType)
"""What is made of the text itself, and not of the numbers that it stands for."""

_PLAIN: Final = re.compile(r"\W*(?:typing\.|t\.|collections\.abc\.)?(?:[Dd]ict|(?:Mutable)?Mapping|Any|object)\b")
_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at `(?P<of_key>key in )?\$(?P<path>[^`]*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_SHOWS_VALUE: Final = re.compile(r"(?P<what>Invalid (?:enum )?value) .*", re.DOTALL)
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, NameError, RuntimeError, SyntaxError, TypeError)
"""What an annotation raises that is text and cannot be evaluated, of a handler as of a field within its type."""


class PayloadTypeError(ValueError):
    """A handler declares a payload type that cannot be read from a JSON object; the message says what can be."""


class PayloadInvalid(ValueError):
    """A payload is not of its handler's type; ``problem`` names the field and what is expected, never the value."""

    def __init__(self, problem: FieldProblem) -> None:
        super().__init__(f"{problem.field}: {problem.problem}")
        self.problem = problem


class PayloadType:
    """The type of one handler's payload."""

    def __init__(self, declared: Any, *, owner: str) -> None:
        """Take a msgspec Struct, a TypedDict, a dataclass, or a union of tagged Structs. Raises PayloadTypeError."""
        try:
            if not _is_structured(declared):
                raise PayloadTypeError(f"{owner}: {declared!r} is no payload type; {_ALLOWED}")
            self._declared = declared
            self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(declared)
            # a type within it that has no schema could not be read either
            self._schema: JsonSchema = msgspec.json.schema(declared)
            self._reads_literally = _mentions(type_info(declared), _LITERAL)
        except _UNREADABLE as error:
            raise PayloadTypeError(f"{owner}: {declared!r} is no payload type: {text_of(error)}; {_ALLOWED}") from error

    def read(self, text: str) -> object:
        """Return the payload as the declared type. Raises PayloadInvalid."""
        try:
            if has_slow_numbers(text) and not self._reads_literally:
                return msgspec.convert(parse(text), self._declared, builtin_types=(), str_keys=True)
            return self._decoder.decode(text)
        except msgspec.ValidationError as error:
            raise PayloadInvalid(_problem_of(str(error))) from error
        except BaseException as error:  # the type's own code runs here, and may raise anything
            problem = f"{clean(class_name(error), limit=100)}: {clean(text_of(error))}"
            raise PayloadInvalid(FieldProblem("payload", problem)) from error

    def schema(self) -> JsonSchema:
        """Describe the payload as JSON Schema, complete in itself."""
        return self._schema


_ALLOWED: Final = "allowed are a msgspec Struct, a TypedDict, a dataclass, or a union of tagged Structs"


def payload_type(function: Callable[..., object], *, declared: Any, owner: str) -> PayloadType | None:
    """Return the type that was *declared*, or else that of the first parameter; None where any object will do.

    Raises PayloadTypeError where neither can be read from a JSON object, or an annotation names what is not there.
    """
    if isinstance(declared, PayloadType):
        return declared
    if declared is not None:
        return PayloadType(declared, owner=owner)
    annotation = _first_annotation(function, owner=owner)
    return PayloadType(annotation, owner=owner) if _is_typed(annotation) else None


def read_payload(text: str, *, kind: PayloadType | None) -> object:
    """Read a payload for its handler. Raises JsonProblem, or PayloadInvalid."""
    value = parse_object(text)
    return value if kind is None else kind.read(text)


def _is_structured(declared: Any) -> bool:
    info = type_info(declared)
    if isinstance(info, UnionType):
        return all(isinstance(one, StructType) for one in info.types)
    return isinstance(info, _OBJECTS)


def _is_typed(annotation: Any) -> bool:
    """Tell whether an annotation is a payload type, or was meant as one: then PayloadType says what is wrong."""
    if annotation in (None, inspect.Parameter.empty):
        return False
    try:
        info = type_info(annotation)
    except _UNREADABLE:
        return True
    if isinstance(info, CustomType):
        return info.cls is not object and not issubclass(info.cls, Mapping)
    return isinstance(info, (*_OBJECTS, UnionType)) and not _is_optional_object(info)


def _is_optional_object(info: Any) -> bool:
    return isinstance(info, UnionType) and not any(isinstance(one, (*_OBJECTS, CustomType)) for one in info.types)


def _first_annotation(function: Callable[..., object], *, owner: str) -> Any:
    try:
        parameters = list(signature_of(function).parameters.values())
    except (TypeError, ValueError):
        # a builtin tells nothing of its parameters
        return None
    annotation = parameters[0].annotation if parameters else None
    if not isinstance(annotation, str):
        return annotation
    if _PLAIN.match(annotation):
        return None
    # only this one is resolved: others may be names that exist for type checkers alone
    holder = SimpleNamespace(__annotations__={"payload": annotation})
    try:
        hints = get_type_hints(holder, globalns=_globals_of(function), include_extras=True)
    except _UNREADABLE as error:
        reason = f"{class_name(error)}: {text_of(error)}"
        raise PayloadTypeError(
            f"{owner}: the payload's annotation {annotation!r} cannot be resolved ({reason}): "
            "import it where the program runs, or declare it as @task(..., payload=...)"
        ) from error
    return hints["payload"]


def signature_of(function: Callable[..., object], *, follow_wrapped: bool = True) -> inspect.Signature:
    """Return a function's parameters, its annotations unread. Raises TypeError or ValueError where they are unknown."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format  # noqa: PLC0415 - not there before

        return inspect.signature(function, follow_wrapped=follow_wrapped, annotation_format=Format.STRING)
    return inspect.signature(function, follow_wrapped=follow_wrapped)


def _globals_of(function: Any) -> dict[str, Any]:
    inner = inspect.unwrap(function)
    while hasattr(inner, "func"):
        inner = inspect.unwrap(inner.func)
    called = inner if hasattr(inner, "__globals__") else getattr(type(inner), "__call__", inner)  # noqa: B004 - the method
    names: dict[str, Any] = getattr(called, "__globals__", {})
    return names


def _mentions(whole: object, kinds: tuple[type, ...]) -> bool:
    """Tell whether a type, as msgspec describes it, is made of any of *kinds*, however deep within."""
    seen, left = set[int](), [whole]
    while left:
        one = left.pop()
        if isinstance(one, kinds):
            return True
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, tuple):
            left += one
        elif isinstance(one, msgspec.Struct):
            left += [getattr(one, name) for name in one.__struct_fields__]
    return False


def _problem_of(message: str) -> FieldProblem:
    """Name the field as dtq does, and leave out values that the parser quotes."""
    match = _MESSAGE.fullmatch(message)
    what, path = (message, "") if match is None else (match["what"], match["path"] or "")
    missing, unknown = _MISSING.fullmatch(what), _UNKNOWN.fullmatch(what)
    field = f"payload{path}"
    if missing is not None:
        return FieldProblem(f"{field}.{missing['name']}", "required")
    if unknown is not None:
        return FieldProblem(f"{field}.{clean(unknown['name'], limit=100)}", "unknown field")
    if match is not None and match["of_key"]:
        field = f"{field} (a key)"
    shows = _SHOWS_VALUE.fullmatch(what)
    what = what if shows is None else f"{shows['what']}: see the task type's schema"
    return FieldProblem(clean(field), clean(what[:1].lower() + what[1:]))
