import pytest

from dtq.entrypoints.config import SettingsError, load
from dtq.entrypoints.http.stream_origin import OriginNotAllowed, Origins


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://dtq.example", "dtq.example"),
        ("http://DTQ.example", "dtq.EXAMPLE"),
        ("http://dtq.example:80", "dtq.example"),
        ("https://dtq.example", "dtq.example:443"),
        ("http://dtq.example:8000", "dtq.example:8000"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
def test_pages_of_the_host_itself_may_listen(origin: str, host: str) -> None:
    assert None is Origins().check({"origin": origin, "host": host})


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://dtq.example:8000", "dtq.example"),
        ("http://dtq.example", "dtq.example:8000"),
        ("http://evil.example", "dtq.example"),
        ("http://dtq.example.evil.example", "dtq.example"),
        ("null", "dtq.example"),
        ("", ""),
        ("http://", ""),
        ("http://[", "["),
        ("http://dtq.example:port", "dtq.example:port"),
    ],
)
def test_others_may_not(origin: str, host: str) -> None:
    with pytest.raises(OriginNotAllowed):
        Origins().check({"origin": origin, "host": host})


def test_what_is_no_browser_has_no_origin() -> None:
    assert None is Origins().check({"host": "dtq.example"})


@pytest.mark.parametrize("setting", ["https://a.example, HTTPS://Other.example", "*"])
def test_an_operator_may_allow_others(setting: str) -> None:
    origins = Origins(load(environment={"DTQ_WS_ALLOWED_ORIGINS": setting}).settings.origins)

    assert "https://other.example" == origins.check({"origin": "https://other.example", "host": "dtq.example"})


def test_an_origin_is_compared_as_a_whole() -> None:
    origins = Origins(frozenset({"https://other.example"}))

    for origin in ("http://other.example", "https://other.example:444", "https://other.example.evil"):
        with pytest.raises(OriginNotAllowed):
            origins.check({"origin": origin, "host": "dtq.example"})


@pytest.mark.parametrize("text", ["other.example", "https://other.example/path", "https://a b", "https://", "**"])
def test_a_setting_that_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="must be origins such as"):
        load(environment={"DTQ_WS_ALLOWED_ORIGINS": text})
