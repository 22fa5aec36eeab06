"""What the headers of a request must be like. Kept from the schemas, which commands read without a web framework."""

from typing import Final

from litestar.datastructures import Headers

from dtq.domain.errors import FieldProblem, InvalidRequest

_PLAIN: Final = "application/json"
"""What almost all say."""


def only(name: str, *, headers: Headers) -> str | None:
    """Return the value of a header that decides something, or None. Raises InvalidRequest where it is given twice."""
    values = headers.getall(name, [])
    if len(values) > 1:
        raise InvalidRequest((FieldProblem(name, "given more than once"),))
    return values[0] if values else None


def check_content_type(headers: Headers) -> None:
    """Let only JSON in UTF-8 pass. Raises InvalidRequest."""
    value = only("Content-Type", headers=headers)
    if value == _PLAIN:
        return
    kind, *parameters = [part.strip().lower() for part in (value or "").split(";")]
    charsets = [part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")]
    if kind == "application/json" and all(charset in {"utf-8", "utf8"} for charset in charsets):
        return
    raise InvalidRequest((FieldProblem("Content-Type", "must be application/json, in UTF-8"),))
