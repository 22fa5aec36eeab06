"""The page that shows the API: complete, and without any other host."""

import gzip
import hashlib
import re
from importlib.resources import files

import pytest

from dtq.entrypoints.http.pages import ASSETS
from tests.entrypoints.conftest import Api

FOLDER = files("dtq.entrypoints.http") / "assets"
REFERENCE = re.compile(r'(?:src|href)="([^"]*)"')


async def test_the_page_names_nothing_but_what_we_serve(api: Api) -> None:
    page = await api.client.get("/docs")

    references = REFERENCE.findall(page.text)
    assert 200 == page.status_code
    assert len(references) >= 5
    for reference in references:
        if not reference.startswith("data:"):
            assert 200 == (await api.client.get(reference)).status_code, reference


async def test_a_browser_is_told_to_ask_nobody_else(api: Api) -> None:
    policy = (await api.client.get("/docs")).headers["content-security-policy"]

    directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert "'none'" == directives["default-src"]
    allowed = {source for sources in directives.values() for source in sources.split()}
    assert {"'none'", "'self'", "'unsafe-inline'", "data:"} == allowed
    assert "'self'" == directives["script-src"] == directives["connect-src"]


async def test_the_page_asks_no_validator() -> None:
    script = (FOLDER / "start.js").read_text()

    assert "validatorUrl: null" in script
    assert "http" not in script.replace("https://", "http://").replace("/docs/openapi.json", "")


@pytest.mark.parametrize("name", ASSETS)
async def test_what_belongs_to_the_page_is_served_compressed_or_not(api: Api, name: str) -> None:
    path = f"/docs/assets/{name}"

    plain = await api.client.get(path, headers={"Accept-Encoding": "identity"})
    usual = await api.client.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"})

    assert (200, 200) == (plain.status_code, usual.status_code)
    assert plain.content == usual.content
    assert "content-encoding" not in plain.headers
    assert plain.headers["content-type"].startswith(ASSETS[name])
    assert ("gzip" == usual.headers.get("content-encoding")) == (FOLDER / f"{name}.gz").is_file()


@pytest.mark.parametrize("encoding", ["gzip;q=0", "gzip ; q=0.0", "gzipped", ""])
async def test_who_refuses_gzip_gets_none(api: Api, encoding: str) -> None:
    answer = await api.client.get("/docs/assets/swagger-ui.css", headers={"Accept-Encoding": encoding})

    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize("name", ["app.py", "..%2Fapp.py", "swagger-ui.css.gz", "%00"])
async def test_nothing_else_is_served(api: Api, name: str) -> None:
    answer = await api.client.get(f"/docs/assets/{name}")

    assert (404, "NOT_FOUND") == (answer.status_code, answer.json()["code"])


def test_swagger_ui_is_as_it_was_published() -> None:
    notice = (FOLDER / "swagger-ui.NOTICE.txt").read_text()
    published = dict(line.split()[::-1] for line in notice.splitlines() if line.endswith((".js", ".css")))

    ours = {
        name: hashlib.sha256(gzip.decompress((FOLDER / f"{name}.gz").read_bytes())).hexdigest() for name in published
    }

    assert {"swagger-ui-bundle.js", "swagger-ui.css"} == set(published)
    assert published == ours
    assert "Apache License" in (FOLDER / "swagger-ui.LICENSE.txt").read_text()
