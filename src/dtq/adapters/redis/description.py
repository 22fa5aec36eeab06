"""The commands that make a change real, in the order that leaves every half of them harmless.

The new home comes first, then the record in one command, then what tells of it, and the old home last: a change that
is cut anywhere leaves its task with at least one home, and a repeat or the next reader clears the rest.

They are described once for all changes of one shape, by functions that find what is a change's own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from dtq.adapters.redis.codec import PAYLOAD, VERSION, ChangedFields
from dtq.adapters.redis.envelope import (
    FIRST_REPLY,
    FORMS_KNOWN,
    TOKEN,
    TOKENS,
    Argument,
    Guard,
    Step,
    stored_field,
    together,
    unless_just_run,
)
from dtq.adapters.redis.forms import Blank, Form, Meaning
from dtq.adapters.redis.guards import admission_guards, begins, requirements
from dtq.adapters.redis.keys import MAX_AUDIT, MAX_RECENT, Keyspace
from dtq.adapters.redis.moves import Finder, Move, Shape
from dtq.adapters.redis.steps import appended, milliseconds_text, published, removed
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Requirement
from dtq.domain.retention import mark_lifetime
from dtq.domain.status import Place
from dtq.ports.answers import LimitName
from dtq.ports.backend import BackendOptions

Name = TypeVar("Name")

_STORED_PAYLOAD: Final = stored_field(PAYLOAD)


class Description:
    """Describes the steps of all moves of one shape."""

    def __init__(self, shape: Shape, blank: Blank[Move], *, find: Finder, options: BackendOptions) -> None:
        self._shape = shape
        self._blank = blank
        # asked only for what follows from the states that it joins
        self._change = blank.sample.change
        self._key = blank.key
        self._text = blank.text
        self._find = find
        self._options = options

    def steps(self) -> list[Step]:
        """Return the commands that make such a move real."""
        payload = self._payload()
        return [
            *self._new_home(payload),
            *self._key_record(),
            *self._record(payload),
            *self._telling(),
            *self._old_home(),
        ]

    def _payload(self) -> Argument:
        """Name the payload: copied from the record where there is one, sent once where there is not."""
        return _STORED_PAYLOAD if self._shape.is_stored else self._text(self._find.payload)

    def _new_home(self, payload: Argument) -> Iterator[Step]:
        shape, find = self._shape, self._find
        if shape.makes_entry:
            fields = self._mapping(find.entry_fields)
            yield (("XADD", self._key(find.stream), "*", *fields, PAYLOAD, payload),)
        if shape.target is Place.SCHEDULE:
            yield (("ZADD", self._key(find.schedule), self._text(find.due), self._text(find.task_id)),)
        if shape.makes_letter:
            fields = [*self._mapping(find.letter_fields), PAYLOAD, payload]
            yield (appended(self._key(find.dead_letters), fields, limit=self._options.dead_letter_limit),)
        if shape.has_result:
            lifetime = milliseconds_text(self._options.retention.result)
            yield (("SET", self._key(find.result_key), self._text(find.result), "PX", lifetime),)

    def _key_record(self) -> Iterator[Step]:
        shape, find = self._shape, self._find
        if not shape.has_key:
            return
        key = self._key(find.idempotency)
        command = ("SET", key, self._text(find.key_record), "PX", self._text(find.key_lifetime))
        if self._change.starts_life:
            yield (command,)
        else:
            prefix, end = self._text(find.record_prefix), self._text(find.record_end)
            yield (command, begins(key, prefix, end=end, or_is_nothing=self._change.may_bind_key))

    def _record(self, payload: Argument) -> Iterator[Step]:
        shape = self._shape
        key = self._key(self._find.record)
        changed = ChangedFields(shape.changed)
        fields = self._blank.fields(changed.names, lambda move: changed.texts(move.after))
        fields += (VERSION, TOKEN, "tokens", TOKENS)
        if not shape.is_stored:
            fields += (PAYLOAD, payload)
        if shape.makes_entry:
            fields += ("entry_id", FIRST_REPLY)
        if shape.makes_letter:
            fields += ("dlq_entry_id", FIRST_REPLY)
        yield (("HSET", key, *fields),)
        yield (("PEXPIRE", key, self._lifetime()),)

    def _lifetime(self) -> Argument:
        """Name how long the record is kept, in the form itself where the task has ended: that is the same for all."""
        if not self._change.after.is_terminal:
            return self._text(self._find.lifetime)
        return self._find.lifetime(self._blank.sample)

    def _telling(self) -> Iterator[Step]:
        shape, find, change = self._shape, self._find, self._change
        if change.starts_life:
            recent = self._key(find.recent)
            yield together(("ZADD", recent, self._text(find.created_at), self._text(find.task_id)), own=2)
            yield together(("ZREMRANGEBYRANK", recent, "0", str(-MAX_RECENT - 1)), own=0)
        if shape.makes_entry or shape.target is Place.SCHEDULE or shape.source is Place.SCHEDULE:
            # counts what is scheduled, and so keeps the name of a queue that something waits in
            registry, delta = self._key(find.queues), change.scheduled_delta
            counted = ("HINCRBY", registry, self._text(find.queue), str(delta))
            # a name is kept as well by the act before
            yield unless_just_run(counted) if delta == 0 else (counted,)
        if change.marks_cancelled:
            marks = self._key(find.cancelled)
            yield (("SADD", marks, self._text(find.task_id)),)
            yield (("PEXPIRE", marks, milliseconds_text(mark_lifetime(self._options.retention))),)
        if shape.audit:
            fields = self._blank.fields(shape.audit, find.audit_fields)
            yield (appended(self._key(find.audit), fields, limit=MAX_AUDIT),)
        if shape.has_event:
            yield (published(self._key(find.events), self._text(find.event)),)

    def _old_home(self) -> Iterator[Step]:
        shape, find = self._shape, self._find
        if shape.source is Place.SCHEDULE and shape.target is not Place.SCHEDULE:
            yield together(("ZREM", self._key(find.schedule), self._text(find.task_id)), own=1)
        if shape.source is Place.SCHEDULE:
            yield together(("ZREM", self._key(find.claimed), self._text(find.task_id)), own=1)
        if shape.leaves_entry:
            for command in removed(self._key(find.stream), self._text(find.entry_id)):
                yield together(command, own=1)
        if shape.leaves_letter:
            yield (("XDEL", self._key(find.dead_letters), self._text(find.letter_id)),)

    def _mapping(self, write: Callable[[Move], Mapping[str, str]]) -> list[Argument]:
        """Have fields written whose names are the same in all tasks."""
        return self._blank.fields(tuple(write(self._blank.sample)), lambda move: write(move).values())


class Forms:
    """The forms of moves, each described when the first move of its shape is made."""

    def __init__(self, keys: Keyspace, *, options: BackendOptions) -> None:
        self._find: Final = Finder(keys, options=options)
        self._options: Final = options
        self._changes: Final[dict[Shape, Form[Move, Requirement]]] = {}
        self._admissions: Final[dict[tuple[Shape, BrokerLimits], Form[Move, LimitName | None]]] = {}

    def __len__(self) -> int:
        """Count the forms that are kept."""
        return len(self._changes) + len(self._admissions)

    def of_change(self, move: Move) -> Form[Move, Requirement]:
        """Return the form of a change, guarded by what it requires; to start a new life it needs free memory."""
        form = self._changes.get(move.shape)
        if form is None:
            form = self._described(move, guards=requirements, needs_memory=move.change.revives)
            _keep(self._changes, move.shape, form)
        return form

    def of_admission(self, move: Move, *, limits: BrokerLimits) -> Form[Move, LimitName | None]:
        """Return the form of a submission, guarded by *limits*; it needs free memory."""
        known_as = (move.shape, limits)
        form = self._admissions.get(known_as)
        if form is None:
            form = self._described(move, guards=partial(admission_guards, limits=limits), needs_memory=True)
            _keep(self._admissions, known_as, form)
        return form

    def _described(
        self,
        move: Move,
        *,
        guards: Callable[[Shape, Blank[Move], Finder], Sequence[tuple[Meaning, Guard]]],
        needs_memory: bool,
    ) -> Form[Move, Meaning]:
        blank, find, shape = Blank(move), self._find, move.shape
        return blank.form(
            guards(shape, blank, find),
            steps=Description(shape, blank, find=find, options=self._options).steps(),
            record=blank.key(find.record),
            needs_memory=needs_memory,
        )


def _keep(forms: dict[Name, Form[Move, Meaning]], known_as: Name, form: Form[Move, Meaning]) -> None:
    if len(forms) >= FORMS_KNOWN:
        forms.clear()
    forms[known_as] = form
