"""The page that shows what the API offers. Swagger UI comes with the package: no other host is asked for anything."""

import gzip
from collections.abc import Iterable
from functools import cache
from html import escape
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final

from litestar import Request, Response, Router, get
from litestar.enums import MediaType
from litestar.exceptions import NotFoundException
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.params import FromPath

PATH: Final = "/docs"
ASSETS: Final = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui-bundle.js.LICENSE.txt": "text/plain",
    "swagger-ui.css": "text/css",
    "swagger-ui.LICENSE.txt": "text/plain",
    "swagger-ui.NOTICE.txt": "text/plain",
    "start.js": "text/javascript",
}
"""What is served beside the page, and as what."""

_HEADERS: Final = {
    # whatever the page may contain, a browser asks nobody but us
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_CACHE: Final = {"Cache-Control": "public, max-age=3600", "Vary": "Accept-Encoding"}
_COMPRESSED: Final = ".gz"

AnyRequest = Request[Any, Any, Any]
AnyResponse = Response[Any]


class DocumentPage(OpenAPIRenderPlugin):
    """Renders an OpenAPI document with Swagger UI."""

    def __init__(self, title: str) -> None:
        super().__init__(path="/", media_type=MediaType.HTML)
        self._title = escape(title)

    def render(self, request: AnyRequest, openapi_schema: dict[str, Any]) -> bytes:
        """Return the page, which loads the document by itself."""
        del request, openapi_schema
        assets = f"{PATH}/assets"
        return (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{self._title}</title>"
            '<link rel=icon href="data:,">'
            f'<link rel=stylesheet href="{assets}/swagger-ui.css">'
            f'<body><div id=docs><noscript>The document is at <a href="{PATH}/openapi.json">{PATH}/openapi.json</a>'
            "</noscript></div>"
            f'<script src="{assets}/swagger-ui-bundle.js"></script>'
            f'<script src="{assets}/start.js"></script></body></html>'
        ).encode()


def pages_router() -> Router:
    """Return what stands below /docs beside the page and the document."""
    return Router(PATH, route_handlers=[_asset], include_in_schema=False, after_request=_finished)


@get("/assets/{name:str}", include_in_schema=False)
async def _asset(request: AnyRequest, name: FromPath[str]) -> Response[bytes]:
    if name not in ASSETS:
        raise NotFoundException
    content, is_compressed = _content(name)
    headers = dict(_CACHE)
    if is_compressed and _takes_gzip(request.headers.get("accept-encoding", "").split(",")):
        headers["Content-Encoding"] = "gzip"
    elif is_compressed:
        content = gzip.decompress(content)
    return Response(content, media_type=ASSETS[name], headers=headers)


@cache
def _content(name: str) -> tuple[bytes, bool]:
    folder = files("dtq.entrypoints.http") / "assets"
    compressed = folder / (name + _COMPRESSED)
    if compressed.is_file():
        return compressed.read_bytes(), True
    return (folder / name).read_bytes(), False


def _takes_gzip(encodings: Iterable[str]) -> bool:
    offered = (encoding.replace(" ", "").lower().partition(";") for encoding in encodings)
    return any(name == "gzip" and weight not in {"q=0", "q=0.0"} for name, _, weight in offered)


def _finished(response: AnyResponse) -> AnyResponse:
    """Give a page its headers. Litestar answers an unknown one by itself, in HTML; it gets the form of all errors."""
    if response.status_code == HTTPStatus.NOT_FOUND:
        raise NotFoundException
    response.headers.update(_HEADERS)
    return response
