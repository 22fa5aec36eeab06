"""DTQ_REDIS_URL: every part of it is checked at start, and none of its secrets is shown."""

from datetime import timedelta
from pathlib import Path

import pytest

from dtq.adapters.redis.client import Client
from dtq.entrypoints.broker_url import redacted
from dtq.entrypoints.cli import main
from dtq.entrypoints.config import SettingsError, load

SECRET = "hidden-word"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://localhost", "scheme is one of"),
        ("localhost:6379", "scheme is one of"),
        ("unix:///tmp/socket", "scheme is one of"),
        ("redis+cluster://localhost", "scheme is one of"),
        ("//localhost", "scheme is one of"),
        ("redis://", "name a host"),
        ("redis:///0", "name a host"),
        ("redis://:6379/0", "name a host"),
        ("redis:localhost", "name a host"),
        ("redis://a..b/0", "its host must be"),
        ("redis://a b/0", "its host must be"),
        ("redis://a%00b/0", "its host must be"),
        (f"redis://{'x' * 64}/0", "its host must be"),
        ("redis://[::1/0", "percent-encoded"),
        ("redis://localhost:port/0", "1..65535"),
        ("redis://localhost:65536/0", "1..65535"),
        ("redis://localhost:-1/0", "1..65535"),
        ("redis://localhost:0/0", "1..65535"),
        ("redis://localhost:/0", "1..65535"),
        ("redis://localhost/zero", "number of a database"),
        ("redis://localhost/-1", "number of a database"),
        ("redis://localhost/10000", "number of a database"),
        ("redis://localhost/0/1", "number of a database"),
        ("redis://localhost/\u0661", "number of a database"),
        ("redis://localhost/0#1", "no # part"),
        ("redis://localhost/0?foo=bar", "no other options than"),
        ("redis://localhost/0?foo", "no other options than"),
        ("redis://localhost/0?protocol=3", "no other options than"),
        ("redis://localhost/0?ssl_cert_reqs=none", "no other options than"),
        ("redis://localhost/?db=abc", "option db must be"),
        ("redis://localhost/?db=-1", "option db must be"),
        ("redis://localhost/?db=", "option db must be"),
        ("redis://localhost/?db=1&db=2", "given once"),
        ("redis://localhost/1?db=2", "name its database once"),
        ("redis://localhost/0?client_name=a%20b", "option client_name must be"),
        ("redis://localhost/0?socket_keepalive=maybe", "option socket_keepalive must be"),
        ("redis://localhost/0?password=", "option password must be"),
        ("rediss://localhost/0?ssl_ca_certs=/not/there", "option ssl_ca_certs must be the name of a file"),
        ("rediss://localhost/0?ssl_ca_path=/not/there", "option ssl_ca_path must be the name of a folder"),
        ("rediss://localhost/0?ssl_cert_reqs=some", "option ssl_cert_reqs must be one of"),
        ("rediss://localhost/0?ssl_min_version=1", "option ssl_min_version must be one of"),
        ("redis://localhost\n/0", "printable"),
        (" redis://localhost/0", "printable"),
        ("redis://:\udcff@localhost/0", "printable"),
    ],
)
def test_a_fault_in_a_part_of_the_url_is_told_as_a_fault_of_the_setting(url: str, words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(environment={"DTQ_REDIS_URL": url})

    [fault] = refused.value.faults
    assert (True, True) == (fault.startswith("DTQ_REDIS_URL="), words in fault)


def test_a_command_lists_a_fault_of_the_url_and_ends_with_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DTQ_REDIS_URL", f"redis://:{SECRET}@localhost/0?foo={SECRET}")

    code = main(["list"])

    out, err = capsys.readouterr()
    assert (2, "", 1, False) == (code, out, len(err.splitlines()), SECRET in err)
    assert err.startswith("dtq: DTQ_REDIS_URL='redis://:***@localhost/0?***': its query must have no other options")


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost/",
        "redis://localhost:1/15",
        "redis://localhost:65535/9999",
        "REDIS://LOCALHOST/0",
        "redis://[::1]:6379/0",
        "redis://a_service.example/0",
        "redis://m\u00fcnchen.example/0",
        "redis://user:p%40%2F%23%3F%5B%00w@localhost/0",
        "redis://:pass word\u00e9:%@localhost/0",
        "redis://user@localhost/0",
        "redis://localhost?db=3&username=user&password=word&client_name=jobs&socket_keepalive=true",
        "rediss://localhost/0?ssl_cert_reqs=none&ssl_check_hostname=false&ssl_min_version=771&ssl_password=x",
        "rediss://localhost/0?ssl_ca_certs={file}&ssl_certfile={file}&ssl_keyfile={file}&ssl_ca_path={folder}",
    ],
)
def test_what_is_allowed_is_understood_by_the_driver(url: str, tmp_path: Path) -> None:
    file = tmp_path / "file.pem"
    file.write_text("")
    text = url.format(file=file, folder=tmp_path)

    settings = load(environment={"DTQ_REDIS_URL": text}).settings

    assert text == settings.redis_url
    Client(settings.redis_url, timeout=timedelta(seconds=1))


@pytest.mark.parametrize(
    "template", ["redis://u:{}@h:0/0", "redis://u:{}@/0", "redis://u:{}@h/0?x={}", "redis://h/0#{}"]
)
def test_no_fault_shows_a_password(template: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(environment={"DTQ_REDIS_URL": template.replace("{}", SECRET)})

    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("mark", ["/", "#", "?"])
def test_a_fault_names_no_part_of_a_password_that_is_not_encoded(mark: str) -> None:
    with pytest.raises(SettingsError, match="percent-encoded") as refused:
        load(environment={"DTQ_REDIS_URL": f"redis://:hidden{mark}secret@host:6379/0"})

    assert [] == [word for word in ("hidden", "secret") if word in str(refused.value)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:word@localhost/0", "redis://:***@localhost/0"),
        ("redis://name@localhost/0", "redis://name:***@localhost/0"),
        ("redis://a:b@c:d@localhost/0", "redis://a:***@localhost/0"),
        ("redis://localhost/0?password=word", "redis://localhost/0?***"),
        ("redis://:wo/rd@localhost/0", "(not shown: no valid URL)"),
        ("redis://:wo#rd@localhost/0", "(not shown: no valid URL)"),
        ("redis://:wo?rd@localhost/0", "(not shown: no valid URL)"),
        ("redis:name:word@localhost/0", "(not shown: no valid URL)"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, expected: str) -> None:
    assert expected == redacted(url)
