"""What can be submitted, as JSON Schema: the bounds of one deployment, and its task types."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dtq.application.admitting import MAX_SUBMISSIONS
from dtq.domain.admission import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    KEY_PATTERN,
    MAX_DELAY_S,
    MAX_METADATA_BYTES,
    MAX_PRIORITY,
    MAX_TIMEOUT_MS,
    MAX_TTL_S,
    QUEUE_PATTERN,
    RESERVED_METADATA,
    TASK_TYPE_PATTERN,
    AdmissionRules,
)
from dtq.domain.json_text import MAX_DEPTH
from dtq.entrypoints.http import examples
from dtq.handlers.registry import Registry

Json = dict[str, Any]

ANY_OBJECT: Final[Json] = {"type": "object"}
_COMPONENTS: Final = "#/components/schemas/"

METADATA: Final[Json] = {
    "type": ["object", "null"],
    "description": f"The client's own, at most {MAX_METADATA_BYTES} bytes as sent. `ttl_seconds`: a task that has not "
    "started by then expires.",
    "properties": {"ttl_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_TTL_S}},
    "propertyNames": {"not": {"enum": list(RESERVED_METADATA)}},
}


def submission_schemas(rules: AdmissionRules, *, registry: Registry) -> Mapping[str, Json]:
    """Return the components SubmitTask and SubmitBatch, and those that the types of payloads need."""
    variants, components = _variants(rules, registry)
    plain = [name for name in sorted(rules.task_types) if registry.payload_schema(name) == ANY_OBJECT]
    example = examples.SUBMISSION | {"task_type": plain[0]} if plain else None
    delayed = None if example is None else {"tasks": [example, example | {"delay_seconds": 60}]}
    task = {
        "title": "SubmitTask",
        "description": "A task to be run. Null stands for the default, as does a member that is left out.",
        **_examples(example),
        **(variants[0] if len(variants) == 1 else {"oneOf": variants}),
    }
    items = {
        "anyOf": [
            {"$ref": f"{_COMPONENTS}SubmitTask"},
            {"description": "Anything else is refused by itself, and harms no other."},
        ]
    }
    batch = {
        "title": "SubmitBatch",
        "description": "Tasks to be run, each accepted or refused by itself.",
        "type": "object",
        "properties": {"tasks": {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_SUBMISSIONS}},
        "required": ["tasks"],
        "additionalProperties": False,
        **_examples(delayed),
    }
    return {"SubmitTask": task, "SubmitBatch": batch, **components}


def _examples(example: Json | None) -> Json:
    return {} if example is None else {"examples": [example]}


def _variants(rules: AdmissionRules, registry: Registry) -> tuple[list[Json], Json]:
    """Describe the submissions of task types that take any object together, and those of each other one by itself."""
    any_object: list[str] = []
    variants: list[Json] = []
    components: Json = {}
    for number, task_type in enumerate(sorted(rules.task_types)):
        schema = registry.payload_schema(task_type)
        if schema == ANY_OBJECT:
            any_object.append(task_type)
            continue
        # its definitions are the document's now, where each needs a name of its own
        prefix = f"Payload{number}."
        moved = msgspec.json.decode(
            msgspec.json.encode(schema).replace(b'"#/$defs/', f'"{_COMPONENTS}{prefix}'.encode())
        )
        components |= {prefix + name: definition for name, definition in moved.pop("$defs", {}).items()}
        variants.append(_variant(rules, {"const": task_type}, moved))
    if any_object or not variants:
        names = {"enum": any_object} if any_object else {"pattern": f"^{TASK_TYPE_PATTERN.pattern}$"}
        variants.insert(0, _variant(rules, names, ANY_OBJECT))
    return variants, components


def _variant(rules: AdmissionRules, task_type: Json, payload: Json) -> Json:
    described = {"type": "string", "description": "What is to run: see /api/v1/task-types.", **task_type}
    return {
        "type": "object",
        "properties": {"task_type": described, **_work(rules, payload), **_course(rules)},
        "required": ["task_type", "payload"],
        "additionalProperties": False,
    }


def _work(rules: AdmissionRules, payload: Json) -> Json:
    """Describe the members that say what is to be done."""
    limits = f"at most {rules.max_payload_bytes} bytes as sent, nested at most {MAX_DEPTH} levels."
    return {
        "payload": {"description": f"What the handler is given: {limits}", **payload},
        "queue": _optional("string", "The queue.", DEFAULT_QUEUE, pattern=f"^{QUEUE_PATTERN.pattern}$"),
        "idempotency_key": _optional(
            "string", "Names the task among those of its queue.", None, pattern=f"^{KEY_PATTERN.pattern}$"
        ),
        "metadata": METADATA,
    }


def _course(rules: AdmissionRules) -> Json:
    """Describe the members that say how it is to be done."""
    return {
        "max_attempts": _optional(
            "integer",
            "How often it may be started.",
            min(DEFAULT_MAX_ATTEMPTS, rules.max_attempts),
            minimum=1,
            maximum=rules.max_attempts,
        ),
        "priority": _optional(
            "integer",
            "Strict: nothing of a lower one starts while a higher one waits.",
            DEFAULT_PRIORITY,
            minimum=0,
            maximum=MAX_PRIORITY,
        ),
        "timeout_ms": _optional(
            "integer",
            "How long an attempt may take.",
            rules.default_timeout_ms,
            minimum=1,
            maximum=MAX_TIMEOUT_MS,
        ),
        "delay_seconds": _optional("number", "How long it waits first.", 0, minimum=0, maximum=MAX_DELAY_S),
    }


def _optional(kind: str, description: str, default: object, **bounds: object) -> Json:
    return {"type": [kind, "null"], "description": description, "default": default, **bounds}
