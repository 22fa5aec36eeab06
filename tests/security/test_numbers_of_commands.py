"""Check 8: the command line takes the numbers that the API takes, and no others."""

from concurrent.futures import ThreadPoolExecutor

from tests.security.site import Site

NO_NUMBERS = (
    ("--priority", "\u0663"),
    ("--priority", " 5"),
    ("--priority", "0_5"),
    ("--max-attempts", "\uff12"),
    ("--delay-seconds", "1_0"),
    ("--delay-seconds", "infinity"),
)


def test_what_only_python_takes_for_a_number_is_refused(site: Site) -> None:
    base = ("submit", "--type", "echo", "--payload", "{}")
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda pair: site.system.command(*base, *pair), NO_NUMBERS))

    codes = {pair: one.returncode for pair, one in zip(NO_NUMBERS, done, strict=True)}
    assert [] == [pair for pair, code in codes.items() if code not in {2, 5}]


def test_a_refusal_is_brief_however_long_what_it_refuses(site: Site) -> None:
    done = site.system.command("submit", "--type", "echo", "--payload", "{}", "--timeout-ms", "9" * 5_000)

    assert 2 == done.returncode
    assert len(done.stderr) < 2_000
