"""docs/backpressure.md tells each limit with the figure that settings or code have."""

from pathlib import Path
from typing import get_args

import pytest

from dtq.adapters.redis.client import MAX_CONNECTIONS
from dtq.adapters.redis.keys import MAX_AUDIT, MAX_RECENT
from dtq.application.admitting import MAX_SUBMISSIONS
from dtq.application.creating import MAX_WAITING_BYTES, RECORD_BYTES
from dtq.application.group_commit import MAX_BATCH
from dtq.application.pace import PIECE_BYTES
from dtq.application.patience import CALL_DEADLINE
from dtq.application.readings import FRESH
from dtq.application.refill import LONGEST_S
from dtq.application.waiting import MAX_WAITERS
from dtq.domain.admission import MAX_METADATA_BYTES
from dtq.entrypoints.config import Settings, variable
from dtq.entrypoints.http.bounded_http import BODY_WITHIN, HEAD_WITHIN, MAX_HEAD_BYTES
from dtq.entrypoints.http.stream_delivery import SEND_LIMIT
from dtq.ports.answers import LimitName
from tests.tidy.tables import rows

TEXT = (Path(__file__).resolve().parents[2] / "docs/backpressure.md").read_text()
FLAT = " ".join(TEXT.split())
IN_TABLES = (
    "max_queue_depth",
    "max_scheduled",
    "max_queues",
    "max_payload_bytes",
    "max_batch_bytes",
    "result_max_bytes",
)
IN_TEXT = ("dlq_maxlen", "ws_buffer", "ws_max_clients")


@pytest.mark.parametrize("name", IN_TABLES)
def test_a_limit_of_the_tables_has_its_default(name: str) -> None:
    table = {**rows(TEXT, "## Work that waits"), **rows(TEXT, "## What is too large")}

    assert str(getattr(Settings(), name)) == table[variable(name)][0].partition(" ")[0]


@pytest.mark.parametrize("name", IN_TEXT)
def test_a_limit_of_the_text_has_its_default(name: str) -> None:
    told = FLAT.partition(f"`{variable(name)}`")[2]

    assert f"({getattr(Settings(), name)})" in told[:30]


def test_every_reason_of_a_full_queue_is_there() -> None:
    told = " ".join(cells[1] for cells in rows(TEXT, "## Work that waits").values())

    assert [] == [reason for reason in get_args(LimitName) if f"(`{reason}`)" not in told]


def test_the_figures_are_those_of_the_code() -> None:
    figures = (
        f"1 to {LONGEST_S} seconds",
        f"| items of a batch | {MAX_SUBMISSIONS} |",
        f"| metadata | {MAX_METADATA_BYTES} bytes |",
        f"{MAX_WAITERS} in one process",
        f"up to {MAX_BATCH}, one batch at a time",
        f"for at most {CALL_DEADLINE.seconds} seconds",
        f"At most {MAX_WAITING_BYTES // 2**20} MiB of submissions",
        f"and {RECORD_BYTES} for each task",
        f"after each {PIECE_BYTES // 1024} KiB others",
        f"| first line and headers | {MAX_HEAD_BYTES} bytes |",
        f"{HEAD_WITHIN.seconds} seconds for first line and headers, and {BODY_WITHIN.seconds} seconds of silence",
        f"takes nothing for {SEND_LIMIT.seconds} seconds",
        f"(up to {FRESH.seconds} s old)",
        f"opens at most {MAX_CONNECTIONS} to Redis",
        f"the {MAX_RECENT} newest",
        f"about {MAX_AUDIT} entries",
    )

    assert [] == [figure for figure in figures if figure not in FLAT]


def test_the_page_of_the_api_has_the_same_figures_for_requests() -> None:
    page = " ".join((Path(__file__).resolve().parents[2] / "docs/api.md").read_text().split())

    assert f"larger than {MAX_HEAD_BYTES // 1024} KiB" in page
    assert f"within {HEAD_WITHIN.seconds} seconds" in page
    assert f"silent for {BODY_WITHIN.seconds} seconds" in page
