"""What answers look like, for the OpenAPI document; a test holds each against its schema."""

from typing import Any, Final

Example = dict[str, Any]

TASK_ID: Final = "6f1c0e2d9b8a4c7f8e3d2a1b0c9d8e7f"
OTHER_ID: Final = "0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d"
WORKER_ID: Final = "worker-1a2b3c4d"
MOMENT: Final = "2026-01-01T12:00:00Z"
LATER: Final = "2026-01-01T12:00:01.250Z"

SUBMISSION: Final[Example] = {
    "task_type": "echo_task",
    "payload": {"text": "hello"},
    "queue": "default",
    "idempotency_key": "order-4711",
    "priority": 7,
    "metadata": {"ttl_seconds": 3600},
}
ACCEPTED: Final[Example] = {"task_id": TASK_ID, "status": "queued"}
CANCELLED: Final[Example] = {"task_id": TASK_ID, "status": "cancelled"}

LISTED: Final[Example] = {
    "task_id": TASK_ID,
    "idempotency_key": "order-4711",
    "task_type": "echo_task",
    "queue": "default",
    "priority": 7,
    "status": "succeeded",
    "attempt": 1,
    "max_attempts": 5,
    "timeout_ms": 30000,
    "created_at": MOMENT,
    "available_at": MOMENT,
    "metadata": {"ttl_seconds": 3600},
    "started_at": MOMENT,
    "finished_at": LATER,
    "duration_ms": 1250,
    "worker_id": WORKER_ID,
    "error_class": None,
    "error_message": None,
    "retryable": None,
    "retry_delay_ms": None,
    "cancel_requested": False,
}
ATTEMPT: Final[Example] = {
    "attempt": 1,
    "started_at": MOMENT,
    "finished_at": LATER,
    "worker_id": WORKER_ID,
    "error_class": None,
    "error_message": None,
    "retryable": None,
    "retry_delay_ms": None,
}
TASK: Final[Example] = LISTED | {
    "payload": {"text": "hello"},
    "result": {"text": "hello"},
    "result_expired": False,
    "result_truncated": False,
    "history": [ATTEMPT],
}
DUPLICATE: Final[Example] = TASK | {"duplicate": True}
GONE_DUPLICATE: Final[Example] = {"task_id": TASK_ID, "status": None, "duplicate": True}
TASKS: Final[Example] = {"tasks": [LISTED], "unreadable": 0}

BATCH: Final[Example] = {
    "results": [
        {"index": 0, "status_code": 202, "task_id": TASK_ID, "status": "queued", "duplicate": False},
        {
            "index": 1,
            "status_code": 400,
            "problem": {
                "status": 400,
                "title": "Bad Request",
                "code": "INVALID_TASK",
                "detail": "priority: must be an integer within 0..9",
                "errors": [{"field": "priority", "problem": "must be an integer within 0..9"}],
            },
        },
    ],
    "accepted": 1,
    "duplicates": 0,
    "refused": 1,
}

QUEUE: Final[Example] = {"queue": "default", "depth": 12, "pending": 4, "paused": False, "retry_scheduled": 3}
QUEUES: Final[Example] = {"queues": [QUEUE]}
QUEUE_DETAIL: Final[Example] = QUEUE | {"dlq_depth": 2, "workers_active": 1}
PAUSED: Final[Example] = {"queue": "default", "paused": True}
RESUMED: Final[Example] = {"queue": "default", "paused": False}
QUEUE_PURGED: Final[Example] = {"queue": "default", "purged": 8}

WORKER: Final[Example] = {
    "worker_id": WORKER_ID,
    "status": "busy",
    "queue": "default",
    "hostname": "host-7",
    "started_at": MOMENT,
    "last_heartbeat": LATER,
    "concurrency": 4,
    "active_tasks": 2,
    "tasks_processed": 40,
    "tasks_failed": 1,
    "tasks_retried": 3,
    "task_types": ["echo_task"],
    "visibility_timeout_s": 30.0,
}
WORKERS: Final[Example] = {"workers": [WORKER]}

DEAD_LETTER: Final[Example] = {
    "entry_id": "1767268801250-0",
    "malformed": False,
    "task_id": OTHER_ID,
    "task_type": "echo_task",
    "original_queue": "default",
    "failed_at": LATER,
    "attempts_made": 5,
    "max_attempts": 5,
    "last_error": "no such recipient",
    "last_error_class": "ValueError",
    "retryable": False,
    "worker_id": WORKER_ID,
}
DEAD_LETTERS: Final[Example] = {"dead_letters": [DEAD_LETTER], "dlq_depth": 1}
_DEAD_TASK: Final[Example] = TASK | {
    "task_id": OTHER_ID,
    "status": "dead_lettered",
    "attempt": 5,
    "result": None,
    "error_class": "ValueError",
    "error_message": "no such recipient",
    "retryable": False,
    "history": [ATTEMPT | {"attempt": 5, "error_class": "ValueError", "error_message": "no such recipient"}],
}
DEAD_LETTER_IN_FULL: Final[Example] = DEAD_LETTER | {"task": _DEAD_TASK}
REQUEUED: Final[Example] = {"task_id": OTHER_ID, "status": "queued"}
DETACHED: Final[Example] = {**REQUEUED, "idempotency_detached": True}
DISCARDED: Final[Example] = {"task_id": OTHER_ID, "status": "dead_lettered", "discarded": True}
DEAD_LETTERS_PURGED: Final[Example] = {"purged": 2}

EXPLANATION: Final[Example] = {
    "task_id": TASK_ID,
    "status": "queued",
    "task_type": "echo_task",
    "queue": "default",
    "priority": 7,
    "at": LATER,
    "reasons": [
        {
            "code": "paused",
            "text": "queue default is paused, `dtq queue resume default` ends that",
            "figures": {"queue": "default"},
            "about": [],
        },
        {
            "code": "ahead",
            "text": "37 ahead of it in higher priorities, at least 1000 in its own",
            "figures": {"above": 37, "before": 1000},
            "about": ["before"],
        },
    ],
    "next": {"code": "resume", "text": "once the queue is resumed, it starts when its turn comes"},
}

AUDIT: Final[Example] = {
    "entries": [
        {
            "actor": "api-key:1a2b3c4d",
            "action": "task.cancel",
            "ts": MOMENT,
            "request_id": "req-1",
            "outcome": "TASK_TERMINAL",
            "task_id": TASK_ID,
            "queue": None,
            "count": None,
            "subject": None,
        }
    ]
}
TASK_TYPES: Final[Example] = {
    "task_types": [{"task_type": "echo_task", "cpu_bound": False, "payload_schema": {"type": "object"}}]
}

_FINDING: Final[Example] = {
    "kind": "task_without_home",
    "count": 1,
    "at_least": False,
    "meaning": "the task is alive and in no place: nobody will run it",
    "remedy": "it gets its place again, with the status and the attempts that it has",
    "is_repaired": True,
    "examples": [
        {
            "subject": TASK_ID,
            "detail": "queued, and its entry 1767268800000-0 is gone",
            "task_id": TASK_ID,
            "queue": "default",
        }
    ],
}
EXAMINED: Final[Example] = {
    "healthy": False,
    "examined": 1207,
    "findings": [_FINDING],
    "suspected": [
        {"kind": "consumer_without_worker", "count": 1, "believed_in_s": 41.5, "subjects": ["mail worker-0000dead"]}
    ],
    "not_examined": [{"what": "types and lifetimes of keys", "why": "NOPERM this user may not run type"}],
    "advice": ["the broker's append-only file is off: its crash loses what it accepted since the last snapshot"],
}
REPAIRED: Final[Example] = EXAMINED | {
    "healthy": True,
    "findings": [_FINDING | {"repaired": 1, "left": 0, "reasons": []}],
}

READY: Final[Example] = {"status": "ready", "broker": "Redis 8.2.0", "problems": [], "warnings": []}
NOT_READY: Final[Example] = {
    "status": "not ready",
    "broker": "unknown",
    "problems": ["no answer within 2 s"],
    "warnings": [],
}
