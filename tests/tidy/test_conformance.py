"""docs/contract-conformance.md has every section of the contract, and rows that are numbered without a gap."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs/contract-conformance.md").read_text()
SECTIONS = 15


def test_every_section_is_there_in_order() -> None:
    assert [str(number) for number in range(1, SECTIONS + 1)] == re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)


def test_the_rows_of_a_section_are_numbered_in_order() -> None:
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        section = part.partition(".")[0]
        ids = re.findall(r"^\| (\d+\.\d+) \|", part, re.MULTILINE)

        assert ids
        assert [f"{section}.{number}" for number in range(1, len(ids) + 1)] == ids
