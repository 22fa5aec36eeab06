"""dtq doctor: what is wrong with what is stored, and its repair."""

from argparse import Namespace
from collections.abc import Mapping
from math import ceil
from typing import TYPE_CHECKING, Final

from dtq.entrypoints.cli.exits import Exit
from dtq.entrypoints.cli.output import print_json, print_line, print_rows
from dtq.entrypoints.cli.parsers import add_command, add_json
from dtq.entrypoints.cli.session import actor, container_of, with_broker
from dtq.entrypoints.container import Container
from dtq.entrypoints.doctor_views import ExaminationBody, FindingBody, SuspicionBody, examination_body

if TYPE_CHECKING:
    from dtq.entrypoints.cli.parsers import Commands

_NOTES: Final = """It reads everything under the key prefix, page by page, and holds nobody up. What seems wrong is read
again two seconds later. It ends with 0 where nothing is wrong, with 10 where something is, or is left after --repair.
docs/doctor.md tells of each finding what it means and what its repair does."""

_SHOWN: Final = 10
_OUTCOMES: Final[Mapping[object, str]] = {True: " (repaired)", False: " (left)"}


def add_to(commands: "Commands") -> None:
    """Add the command that examines."""
    parser = add_command(
        commands,
        "doctor",
        does="examine everything that is stored for what is wrong, and repair what is safe",
        run=examine,
        notes=_NOTES,
        examples=["dtq doctor", "dtq doctor --repair"],
    )
    parser.add_argument(
        "--repair", action="store_true", help="repair what is safe, up to 1,000 things of a kind; each is audited"
    )
    add_json(parser)


def examine(arguments: Namespace) -> Exit:
    """Examine, and repair where that is asked."""
    is_repair: bool = arguments.repair

    async def use(container: Container) -> Exit:
        doctor = container.doctor()
        report = await doctor.repair(by=actor(container)) if is_repair else await doctor.examine()
        body = examination_body(report, is_repair=is_repair)
        if arguments.json:
            print_json(body)
        else:
            _print(body, is_repair=is_repair)
        return Exit.DONE if body.healthy else Exit.UNWELL

    return with_broker(container_of(arguments), use)


def _print(body: ExaminationBody, *, is_repair: bool) -> None:
    headings = ("finding", "count", *(("repaired", "left") if is_repair else ("repair",)))
    rows = [(one.kind, _count(one), *_repair(one, is_repair=is_repair)) for one in body.findings]
    print_rows(headings, rows, empty=f"nothing is wrong ({body.examined} things examined)")
    for finding in body.findings:
        _print_finding(finding)
    for suspicion in body.suspected:
        _print_suspicion(suspicion)
    for part in body.not_examined:
        print_line(f"not examined: {part.what}: {part.why}")
    for text in body.advice:
        print_line(f"advice: {text}")
    if body.findings and not is_repair and any(one.is_repaired for one in body.findings):
        print_line("`dtq doctor --repair` repairs what is safe")


def _print_suspicion(suspicion: SuspicionBody) -> None:
    shown = suspicion.subjects[:_SHOWN]
    more = f", and {suspicion.count - len(shown)} more" if suspicion.count > len(shown) else ""
    named = f"not yet believed: {suspicion.kind}: {', '.join(shown)}{more}"
    first = "the first of them" if suspicion.count > 1 else "it"
    print_line(f"{named}; wrong if {first} is still so in {ceil(suspicion.believed_in_s)} s")


def _count(finding: FindingBody) -> str:
    return f"at least {finding.count}" if finding.at_least else str(finding.count)


def _repair(finding: FindingBody, *, is_repair: bool) -> tuple[object, ...]:
    if is_repair:
        return finding.repaired, finding.left
    return ("--repair" if finding.is_repaired else "by hand",)


def _print_finding(finding: FindingBody) -> None:
    print_line("")
    print_line(f"{finding.kind}: {finding.meaning}")
    for one in finding.examples[:_SHOWN]:
        print_line(f"  {one.subject}: {one.detail}{_OUTCOMES.get(one.is_repaired, '')}")
    if finding.count > _SHOWN:
        print_line(f"  and {finding.count - _SHOWN} more")
    reasons = finding.reasons if isinstance(finding.reasons, list) else []
    for reason in reasons:
        print_line(f"  left: {reason}")
    if not reasons:
        print_line(f"  {'repair' if finding.is_repaired else 'by hand'}: {finding.remedy}")
