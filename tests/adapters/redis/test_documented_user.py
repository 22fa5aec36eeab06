"""The user that operators may copy from the documentation is the one that the contract suite runs as."""

import re
from pathlib import Path

from tests.contract.redis_harness import rules_of

SCHEMA = Path(__file__).parents[3] / "docs" / "redis-schema.md"


def test_the_documented_rules_are_those_that_the_contract_suite_runs_with() -> None:
    (line,) = re.findall(r"```text\nACL SETUSER dtq (.*?)\n```", SCHEMA.read_text(), re.DOTALL)

    assert list(rules_of("dtq")) == str(line).split()
