"""What each kind of finding means for an operator, and what repairs it; docs/doctor.md has the same words."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dtq.domain.findings import Kind


class Diagnosis(Struct, frozen=True, kw_only=True):
    """``meaning`` is what goes wrong while it is so, ``remedy`` what is done, or has to be done by a person.

    ``is_repaired`` tells whether a repair is tried at all.
    """

    meaning: str
    remedy: str
    is_repaired: bool = True


DIAGNOSES: Final[Mapping[Kind, Diagnosis]] = {
    Kind.SERVER: Diagnosis(
        meaning="the server is not one that keeps the promises: too old, a replica, evicting, or forbidding",
        remedy="set it up as the finding says",
        is_repaired=False,
    ),
    Kind.CLOCKS: Diagnosis(
        meaning="two clocks are more than a second apart: times that are shown or logged do not fit together",
        remedy="let every host keep its clock by NTP",
        is_repaired=False,
    ),
    Kind.WRONG_TYPE: Diagnosis(
        meaning="somebody else's data stands where dtq keeps its own, which can be neither read nor written",
        remedy="find out whose it is, and remove it",
        is_repaired=False,
    ),
    Kind.EXHAUSTED: Diagnosis(
        meaning=(
            "the server has no id left for what comes next: a queue's stream takes no task, retry or requeue of that "
            "priority, the one of dead letters nothing that is given up, and the audit trail no destructive act"
        ),
        remedy="make the stream anew without what has the last id, as docs/doctor.md shows",
        is_repaired=False,
    ),
    Kind.UNREADABLE: Diagnosis(
        meaning="dtq did not write it so: its task neither runs nor ends",
        remedy=(
            "correct the field by HSET, as docs/doctor.md shows; "
            "whoever deletes the record loses a task that waits for its time"
        ),
        is_repaired=False,
    ),
    Kind.UNREGISTERED: Diagnosis(
        meaning=(
            "the queue is in no list, and no sweep cares for it, "
            "although it has keys, or a living task's record names it"
        ),
        remedy="it is registered, and gets its count",
    ),
    Kind.BAD_NAME: Diagnosis(
        meaning="the name counts toward DTQ_MAX_QUEUES and stands for nothing",
        remedy="it is struck out of the list",
    ),
    Kind.GROUP: Diagnosis(
        meaning="what is submitted with these priorities waits until a worker of the queue looks",
        remedy="the groups are made again, from the first entry on",
    ),
    Kind.AHEAD: Diagnosis(
        meaning="what is submitted with these priorities is never delivered: the group takes it for read",
        remedy="the group reads on after the last entry that somebody owns",
    ),
    Kind.ORPHAN_ENTRY: Diagnosis(
        meaning="the task can be neither shown nor cancelled, and loses its metadata",
        remedy="a record is made from the entry; one that could not run becomes a dead letter, a cancelled one goes",
    ),
    Kind.HOLLOW_ENTRY: Diagnosis(
        meaning="once it is delivered its task is given up as PayloadNotDecodable, although its record has the payload",
        remedy="a task that waits gets another entry, with what its record has; one that has begun is for a person",
    ),
    Kind.SURPLUS_ENTRY: Diagnosis(
        meaning="a second copy of a task, or one of a task that does not wait in a queue: it counts toward its depth",
        remedy="the entry is removed, as a worker would that gets it",
    ),
    Kind.STRAY_MEMBER: Diagnosis(
        meaning="an id is scheduled whose task does not wait for its time: it counts toward DTQ_MAX_SCHEDULED",
        remedy="it is taken out of the schedule; a task whose record is gone is lost, and has to be submitted again",
    ),
    Kind.MISTIMED: Diagnosis(
        meaning=(
            "a delayed task or a retry is promoted too early, too late or never, "
            "since its schedule and its record disagree, or a leader has it on loan as well"
        ),
        remedy="it is scheduled again, once, for the time that its record says",
    ),
    Kind.HOMELESS: Diagnosis(
        meaning="the task is alive and in no place: nobody will run it",
        remedy="it gets its place again, with the status and the attempts that it has",
    ),
    Kind.ABANDONED: Diagnosis(
        meaning="its worker is gone, and no other has taken it over in the time that this takes",
        remedy="its entry is handed back: the next worker of the queue takes it over; see that there is one",
    ),
    Kind.LETTER_MISSING: Diagnosis(
        meaning="the task was given up, and no list of dead letters shows it; it cannot be requeued",
        remedy=(
            "its dead letter is written again, or named again where it stands and its record lost its name; "
            "of one whose record names none, and which no letter names, a person has to say so first"
        ),
    ),
    Kind.LETTER_SURPLUS: Diagnosis(
        meaning="a dead letter that counts for no task, and takes the room of others",
        remedy="it is removed",
    ),
    Kind.KEY: Diagnosis(
        meaning="a submission with this key gets a wrong answer, or is taken for a new one too early or too late",
        remedy="the record says again what its task is; one that stands for no task is removed",
    ),
    Kind.LOCK: Diagnosis(
        meaning=(
            "it has none, or a longer one than a lock gets: if its holder is gone, or a stranger, nobody leads, "
            "nothing that is due is promoted, and nothing is swept"
        ),
        remedy="it gets the lifetime of a lock, 10 s, after which a worker leads",
    ),
    Kind.ETERNAL: Diagnosis(
        meaning="it will never expire, and memory fills up",
        remedy="it gets the lifetime that dtq would give it now; what handlers store is theirs",
    ),
    Kind.SHORT: Diagnosis(
        meaning="it is lost while it is needed: a task that has not ended, its key, or what holds many of them",
        remedy="it gets the lifetime that dtq would give it now, or none where it is to have none",
    ),
    Kind.FOREIGN: Diagnosis(
        meaning="somebody else's data under the key prefix",
        remedy="find out whose it is, and remove it, or give dtq a prefix of its own",
        is_repaired=False,
    ),
    Kind.HEARTBEAT: Diagnosis(
        meaning="a worker that lives is not shown, and does not count as alive where consumers are swept",
        remedy="it is put into the list; the leader removes it once it falls silent",
    ),
    Kind.CONSUMER: Diagnosis(
        meaning="the names of workers that are gone pile up in the groups: no leader has swept for more than a minute",
        remedy="it is removed, unless it has come to own something",
    ),
    Kind.COUNT: Diagnosis(
        meaning="the figures of the queue are wrong; a text that is no number stops its delayed tasks and retries",
        remedy="the number is corrected",
    ),
}
"""Every kind, with its words."""
