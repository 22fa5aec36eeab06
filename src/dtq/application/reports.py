"""What a round of the doctor found, by kind: noted while it lasts, told at its end, with what became of it."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.application.treatment import Outcome
from dtq.domain.facts import Denied
from dtq.domain.findings import Finding, Kind

MOST: Final = 1_000
"""How many things of a kind are looked at twice, counted and repaired in one round."""

EXAMPLES: Final = 50
"""How many of a kind are told one by one."""

MOST_DENIED: Final = 50


class Group(Struct, frozen=True, kw_only=True):
    """What was found of one kind: how many, or at least how many; the first of them; and what became of them.

    ``repaired`` and ``left`` add up to ``count`` where a repair was asked for; ``reasons`` say why some are left, and
    ``outcomes`` what became of each example.
    """

    kind: Kind
    count: int
    is_exact: bool
    examples: Sequence[Finding]
    repaired: int = 0
    left: int = 0
    reasons: Sequence[str] = ()
    outcomes: Sequence[Outcome] = ()


class Suspicion(Struct, frozen=True):
    """What would be wrong if it stayed so: how many of a kind, and after how long the first of them is believed.

    ``subjects`` names the first of them.
    """

    kind: Kind
    count: int
    ripe_in: timedelta
    subjects: Sequence[str]


class Report(Struct, frozen=True, kw_only=True):
    """What one round found; ``advice`` is what operators may want to change although nothing is wrong."""

    examined: int
    groups: Sequence[Group]
    suspicions: Sequence[Suspicion]
    denied: Sequence[Denied]
    advice: Sequence[str]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong, or nothing any more."""
        return all(group.repaired == group.count and group.is_exact for group in self.groups)


class Notes:
    """What a round has come across so far."""

    def __init__(self) -> None:
        self.examined = 0
        self.denied: list[Denied] = []
        self._suspects: dict[tuple[Kind, str], Finding] = {}
        self._numbers = Counter[Kind]()
        self.overflown: set[Kind] = set()

    def add(self, finding: Finding) -> None:
        """Take note of a suspicion, unless it is known, or there are too many of its kind."""
        name = (finding.kind, finding.subject)
        if name in self._suspects:
            return
        if self._numbers[finding.kind] >= MOST:
            self.overflown.add(finding.kind)
            return
        self._numbers[finding.kind] += 1
        self._suspects[name] = finding

    def refuse(self, denied: Denied) -> None:
        """Take note of what could not be read."""
        if len(self.denied) < MOST_DENIED:
            self.denied.append(denied)

    @property
    def suspects(self) -> Sequence[Finding]:
        """Everything that seemed wrong."""
        return [*self._suspects.values()]


def report_of(found: Notes, confirmed: Sequence[Finding], *, advice: Sequence[str], keeps_all: bool) -> Report:
    """Tell what is sure, and what is not yet."""
    groups: list[Group] = []
    suspicions: list[Suspicion] = []
    for kind in Kind:
        ripe = [one for one in confirmed if one.kind is kind and not one.ripe_in]
        young = [one for one in confirmed if one.kind is kind and one.ripe_in]
        if ripe:
            is_exact = kind not in found.overflown
            shown = ripe if keeps_all else ripe[:EXAMPLES]
            groups.append(Group(kind=kind, count=len(ripe), is_exact=is_exact, examples=shown))
        elif kind in found.overflown:
            # none of the first was wrong in the end, and nobody has looked at the rest again
            found.refuse(Denied(f"what seemed to be {kind}", f"more than {MOST} things seemed so at first: look again"))
        if young:
            first = min(one.ripe_in for one in young)
            suspicions.append(Suspicion(kind, len(young), first, [one.subject for one in young[:EXAMPLES]]))
    return Report(
        examined=found.examined, groups=groups, suspicions=suspicions, denied=tuple(found.denied), advice=advice
    )


def treated(group: Group, outcomes: Sequence[Outcome]) -> Group:
    """Add what became of each that was to be repaired."""
    reasons = [reason for reason in outcomes if reason is not None]
    return replace(
        group,
        examples=group.examples[:EXAMPLES],
        repaired=len(outcomes) - len(reasons),
        left=len(reasons),
        reasons=tuple(dict.fromkeys(reasons))[:EXAMPLES],
        outcomes=outcomes[:EXAMPLES],
    )
