"""What can be submitted, as JSON Schema: the bounds of one deployment, and its task types."""

from collections.abc import Mapping
from typing import Any, Final

from dtq.application.tasks import MAX_SUBMISSIONS
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

Json = dict[str, Any]

METADATA: Final[Json] = {
    "type": ["object", "null"],
    "description": f"The client's own, at most {MAX_METADATA_BYTES} bytes as sent. `ttl_seconds`: a task that has not "
    "started by then expires.",
    "properties": {"ttl_seconds": {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_TTL_S}},
    "propertyNames": {"not": {"enum": list(RESERVED_METADATA)}},
}


def submission_schemas(rules: AdmissionRules) -> Mapping[str, Json]:
    """Return the components SubmitTask and SubmitBatch: what can be submitted here."""
    types = sorted(rules.task_types)
    example = examples.SUBMISSION | ({"task_type": types[0]} if types else {})
    task = {
        "title": "SubmitTask",
        "description": "A task to be run. Null stands for the default, as does a member that is left out.",
        "type": "object",
        "properties": {**_work(rules), **_course(rules)},
        "required": ["task_type", "payload"],
        "additionalProperties": False,
        "examples": [example],
    }
    items = {
        "anyOf": [
            {"$ref": "#/components/schemas/SubmitTask"},
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
        "examples": [{"tasks": [example, example | {"delay_seconds": 60}]}],
    }
    return {"SubmitTask": task, "SubmitBatch": batch}


def _work(rules: AdmissionRules) -> Json:
    """Describe the members that say what is to be done."""
    types = sorted(rules.task_types)
    return {
        "task_type": {
            "type": "string",
            "description": "What is to run: see /api/v1/task-types.",
            **({"enum": types} if types else {"pattern": f"^{TASK_TYPE_PATTERN.pattern}$"}),
        },
        "payload": {
            "type": "object",
            "description": f"What the handler is given: at most {rules.max_payload_bytes} bytes as sent, nested at "
            f"most {MAX_DEPTH} levels.",
        },
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
