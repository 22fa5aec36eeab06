"""The OpenAPI document of one deployment: what its handlers are described with, and what its settings decide."""

from typing import Any, Final

import msgspec
from litestar import Request
from litestar.enums import OpenAPIMediaType
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Components, License, SecurityScheme, Tag

import dtq
from dtq.domain.admission import AdmissionRules
from dtq.entrypoints.http.auth import KEY_HEADER
from dtq.entrypoints.http.describe import NULL
from dtq.entrypoints.http.pages import PATH, DocumentPage, pages_router
from dtq.entrypoints.http.routes import SECURITY_SCHEME
from dtq.entrypoints.http.submissions import submission_schemas
from dtq.handlers.registry import Registry

DOCUMENT_PATH: Final = "/openapi.json"
_ABOUT: Final = """A distributed task queue on Redis Streams.

Every error is a problem document (RFC 9457) with a stable `code`. Beside those that each operation lists, any of them
may answer 500 `INTERNAL`, a path that is none 404 `NOT_FOUND`, and another method 405 `METHOD_NOT_ALLOWED`. A query
parameter that an operation does not know, or that is given twice, is refused with 400 `INVALID_REQUEST`.

Figures are exact unless their description says that they are approximate. Times are UTC. Of duplicate members in a
JSON object the last one counts; payload and metadata are kept and handed out as they were sent.
"""
_TAGS: Final = {
    "tasks": "Submit tasks, look at them, cancel them.",
    "queues": "Figures of queues; pause, resume and purge.",
    "dead letters": "Tasks that were given up: look, requeue, discard, purge.",
    "workers": "Who works.",
    "audit": "Who did what.",
    "doctor": "What is wrong with what is stored, and its repair.",
    "events": "What happens, as it happens.",
    "health": "For load balancers and supervisors.",
}

Json = dict[str, Any]


class Document(OpenAPIRenderPlugin):
    """Renders the OpenAPI document as JSON, with the components that *rules* and *registry* decide."""

    def __init__(self, rules: AdmissionRules, *, registry: Registry) -> None:
        super().__init__(path=DOCUMENT_PATH, media_type=OpenAPIMediaType.OPENAPI_JSON)
        self._rules = rules
        self._registry = registry
        self._rendered = b""

    def render(self, request: Request[Any, Any, Any], openapi_schema: Json) -> bytes:
        """Return the document, which is made once."""
        del request
        if not self._rendered:
            components = openapi_schema["components"]
            schemas = {**components["schemas"], **submission_schemas(self._rules, registry=self._registry)}
            whole = {**openapi_schema, "components": {**components, "schemas": schemas}}
            self._rendered = msgspec.json.encode(whole).replace(msgspec.json.encode(NULL), b"null")
        return self._rendered


def openapi_config(rules: AdmissionRules, *, registry: Registry) -> OpenAPIConfig:
    """Return the document's frame, the page that shows it, and where both are served."""
    return OpenAPIConfig(
        title="dtq",
        version=dtq.__version__,
        description=_ABOUT,
        license=License(name="MIT", identifier="MIT"),
        tags=[Tag(name=name, description=text) for name, text in _TAGS.items()],
        components=Components(
            security_schemes={
                SECURITY_SCHEME: SecurityScheme(
                    type="apiKey",
                    name=KEY_HEADER,
                    security_scheme_in="header",
                    description="The value of DTQ_API_KEY. Where that is not set, nothing needs a key.",
                )
            }
        ),
        path=PATH,
        render_plugins=[DocumentPage(f"dtq {dtq.__version__}"), Document(rules, registry=registry)],
        openapi_router=pages_router(),
        use_handler_docstrings=True,
    )
