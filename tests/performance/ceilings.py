"""What a piece of work may take at most, on every machine the same: the one table that the guard compares with.

How fast the machine is does not count, but what ends while a request is on its way travels in one with the next: on a
machine that others use as well, a drain's batches are smaller now and then. So the least of a few counts is taken.

A change that makes something cheaper lowers the ceiling to a little above the new count, in the same commit; one that
makes it dearer raises it, and says in its message what that buys. `python -m tests.performance.ceilings` counts anew.

calls     Python calls, of functions and of coroutines each time they go on
trips     round trips to Redis; a worker's loops that do the same each second are left out, but for the idle worker
bytes     sent to Redis on these trips
commands  that Redis ran, those inside scripts among them
"""

from collections.abc import Mapping
from typing import Final

CEILINGS: Final[Mapping[str, Mapping[str, float]]] = {
    # of a task that waits, with 200 bytes of payload, until its handler has run and its end is recorded; its trips are
    # 0.2 in batches of five, 0.23 on a slow machine, and 0.3 at least where starts or ends travel by themselves
    "drain at 10": {"calls": 160, "trips": 0.26, "bytes": 930, "commands": 13.5},
    "drain at 100": {"calls": 126, "trips": 0.045, "bytes": 710, "commands": 11.3},
    # of a task that AsyncClient submits straight to the broker
    "submit": {"calls": 205, "trips": 1.0, "bytes": 1850, "commands": 21.0},
    "batch": {"calls": 100, "trips": 0.035, "bytes": 820, "commands": 6.9},
    # of a second in which a worker has nothing to do
    "idle": {"calls": 820, "trips": 7.5, "bytes": 1420, "commands": 14.0},
}


def table(counts: Mapping[str, Mapping[str, float]]) -> str:
    """Return counts beside their ceilings, a line each."""
    return "\n".join(
        f"{what:14} {name:9} {count:9.3f} of {CEILINGS[what][name]:g}"
        for what, of in counts.items()
        for name, count in of.items()
    )


def above(counts: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Say of each count that is above its ceiling what it is."""
    return [
        f"{what}: {count:g} {name}, at most {CEILINGS[what][name]:g}"
        for what, of in counts.items()
        for name, count in of.items()
        if count > CEILINGS[what][name]
    ]


def main() -> None:
    """Count everything a few times, and print the least."""
    # imported late: the table itself needs no server
    from tests.performance.counted import least  # noqa: PLC0415 - see above
    from tests.servers import start_own  # noqa: PLC0415 - see above

    with start_own() as server:
        print(table({what: least(what, server=server, enough=lambda _: False) for what in CEILINGS}))  # noqa: T201 - it is for that


if __name__ == "__main__":
    main()
