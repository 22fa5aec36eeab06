import pytest

from dtq.entrypoints.api import http_of
from dtq.entrypoints.config import SettingsError, load
from dtq.entrypoints.http.stream_origin import OriginNotAllowed, Origins, origins_of, origins_that_act


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


@pytest.mark.parametrize(
    "name", ["localhost:8000", "LOCALHOST:8000", "dtq.localhost:8000", "127.0.0.1:8000", "[::1]:80"]
)
def test_an_api_on_loopback_has_the_names_of_this_machine(name: str) -> None:
    assert None is Origins(is_local=True).check({"origin": f"http://{name}", "host": name})


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "192.0.2.7"])
def test_a_name_that_was_led_there_is_none_of_them(name: str) -> None:
    headers = {"origin": f"http://{name}:8000", "host": f"{name}:8000"}

    assert None is Origins().check(headers)
    with pytest.raises(OriginNotAllowed):
        Origins(is_local=True).check(headers)


def test_an_api_on_loopback_has_the_names_of_the_allowed_origins_too() -> None:
    origins = Origins(frozenset({"https://dtq.example"}), is_local=True)

    assert None is origins.check({"origin": "http://dtq.example:8000", "host": "dtq.example:8000"})


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("192.0.2.7", False), ("::", False)],
)
def test_what_the_api_listens_on_says_who_reaches_it(host: str, is_local: bool) -> None:  # noqa: FBT001 - a parameter
    settings = load(environment={"DTQ_API_HOST": host}).settings

    assert (is_local, is_local) == (origins_of(settings).is_local, origins_that_act(settings).is_local)


@pytest.mark.parametrize(("site", "is_refused"), [("cross-site", True), ("same-origin", False), ("none", False)])
def test_a_browser_that_names_no_origin_may_still_say_that_it_is_another_one(site: str, *, is_refused: bool) -> None:
    headers = {"host": "dtq.example", "sec-fetch-site": site}

    if is_refused:
        with pytest.raises(OriginNotAllowed):
            Origins().check(headers)
    assert None is Origins(frozenset({"*"})).check(headers)


def test_everybody_may_watch_but_whoever_acts_is_named() -> None:
    settings = load(environment={"DTQ_WS_ALLOWED_ORIGINS": "*,https://named.example"}).settings
    acting, watching = origins_that_act(settings), origins_of(settings)

    for origin in ("https://named.example", "https://other.example"):
        assert origin == watching.check({"origin": origin, "host": "dtq.example"})
    assert "https://named.example" == acting.check({"origin": "https://named.example", "host": "dtq.example"})
    with pytest.raises(OriginNotAllowed):
        acting.check({"origin": "https://other.example", "host": "dtq.example"})


def test_an_origin_is_compared_as_a_whole() -> None:
    origins = Origins(frozenset({"https://other.example"}))

    for origin in ("http://other.example", "https://other.example:444", "https://other.example.evil"):
        with pytest.raises(OriginNotAllowed):
            origins.check({"origin": origin, "host": "dtq.example"})


@pytest.mark.parametrize("text", ["other.example", "https://other.example/path", "https://a b", "https://", "**"])
def test_a_setting_that_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="must be origins such as"):
        load(environment={"DTQ_WS_ALLOWED_ORIGINS": text})


@pytest.mark.parametrize(
    "name",
    ["localhost", "LOCALHOST:8000", "dtq.localhost:1", "127.0.0.1:8000", "127.1.2.3", "[::1]:80", "", "dtq.example"],
)
def test_an_api_on_loopback_is_asked_by_names_that_lead_there(name: str) -> None:
    assert Origins(frozenset({"https://dtq.example"}), is_local=True).may_be_asked(name)


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "192.0.2.7",
        "::1",
        "[",
        "@",
        "evil@localhost",
        "localhost/evil",
    ],
)
def test_an_api_on_loopback_is_asked_by_no_other_name_and_one_elsewhere_by_any(name: str) -> None:
    assert not Origins(frozenset({"*"}), is_local=True).may_be_asked(name)
    assert Origins().may_be_asked(name)


def test_the_server_knows_by_which_names_it_may_be_asked() -> None:
    local, reachable = [load(environment={"DTQ_API_HOST": host}).settings for host in ("127.0.0.1", "192.0.2.7")]

    answers = [http_of(settings).origins.may_be_asked("evil.example") for settings in (local, reachable)]

    assert [False, True] == answers
