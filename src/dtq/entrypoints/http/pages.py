"""A page that lists what the API offers; it asks no other host for anything."""

from collections.abc import Iterator
from html import escape
from typing import Any, Final

from litestar import Request
from litestar.enums import MediaType
from litestar.openapi.plugins import OpenAPIRenderPlugin

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_STYLE: Final = (
    "body{font:16px sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}td{padding:.3rem 1rem .3rem 0}"
)


class OperationsPage(OpenAPIRenderPlugin):
    """Renders the operations of an OpenAPI document as plain HTML."""

    def __init__(self) -> None:
        super().__init__(path="/", media_type=MediaType.HTML)

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Return the page."""
        del request
        title = escape(f"{openapi_schema['info']['title']} {openapi_schema['info']['version']}")
        rows = "".join(_rows(openapi_schema))
        return (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
            f"<h1>{title}</h1><table>{rows}</table>"
            '<p>Everything else is in the <a href="/docs/openapi.json">OpenAPI document</a>.</p></html>'
        ).encode()


def _rows(document: dict[str, Any]) -> Iterator[str]:
    for path, operations in sorted(document["paths"].items()):
        for method in _METHODS:
            if method in operations:
                summary = escape(operations[method].get("summary") or "")
                yield f"<tr><td><code>{method.upper()}</code><td><code>{escape(path)}</code><td>{summary}"
