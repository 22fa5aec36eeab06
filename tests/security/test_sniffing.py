"""Check 5: a browser is told with every answer not to take it for something else than it says it is."""

import pytest

from tests.security.site import Site

PATHS = (
    "/api/v1/tasks",
    "/api/v1/audit",
    "/api/v1/tasks/<script>",
    "/nowhere",
    "/metrics",
    "/health",
    "/ready",
    "/docs",
    "/docs/openapi.json",
)


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_says_nosniff(site: Site, path: str) -> None:
    assert "nosniff" == site.api.http.get(path).headers.get("x-content-type-options")
