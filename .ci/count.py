"""Counts the tests in a folder of JUnit files, prints one closing line, exits 1 if anything failed."""

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree as ET


def count(folder: Path) -> tuple[int, int]:
    """How many tests passed and how many did not, in all files together."""
    total = failed = 0
    for path in sorted(folder.glob("*.xml")):
        for suite in ET.parse(path).iter("testsuite"):  # noqa: S314 - pytest wrote them a moment ago
            total += int(suite.attrib["tests"])
            failed += sum(int(suite.attrib[kind]) for kind in ("failures", "errors", "skipped"))
    return total - failed, failed


def main() -> int:
    """Print the line; a run that ended badly before it counted a failure, or that ran nothing, has one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--status", type=int, default=0, help="0 if every command before succeeded")
    arguments = parser.parse_args()
    passed, failed = count(arguments.folder)
    if failed == 0 and (arguments.status != 0 or passed == 0):
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
