from pathlib import Path

import pytest

from tests.tidy import honesty, prose, rules, shape
from tests.tidy.source import Check

PROJECT = Path(__file__).resolve().parents[2]

CHECKS: tuple[Check, ...] = (
    shape.modules_are_short,
    shape.functions_are_short,
    shape.names_say_something,
    rules.scripts_know_no_status,
    rules.adapters_know_no_status,
    rules.keys_are_spelled_once,
    prose.decisions_have_their_form,
    prose.conformance_names_living_proof,
    prose.documents_name_living_files,
    prose.exceptions_carry_reasons,
    prose.linter_exceptions_carry_reasons,
    prose.nothing_is_left_behind,
    honesty.no_test_is_skipped,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_project_is_tidy(check: Check) -> None:
    findings = check(PROJECT)

    assert not findings, "\n".join(["", check.__doc__ or "", *findings])
