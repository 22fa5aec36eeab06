"""Judged: whatever strangers send, the series of an API stay below the bound that docs/metrics.md gives."""

import asyncio

import pytest

from dtq import demo
from dtq.handlers.registry import Registry
from tests.judged.system import System
from tests.judged.test_hostile_requests import QUEUES, deployment, send_all
from tests.scraped import Scraped

__all__ = ["deployment"]

REASONS = 10
OF_REDIS = 160
TYPES = Registry.from_modules([demo]).task_types

pytestmark = pytest.mark.timeout(3600)


@pytest.mark.parametrize("settings", [{}, {"DTQ_API_KEY": "s3cret-key"}], ids=["open", "guarded"])
def test_strangers_make_no_more_series_than_the_page_says(deployment: System, settings: dict[str, str]) -> None:
    api = deployment.api(settings)

    statuses, accepted = asyncio.run(send_all(api, seed=3))

    shown = Scraped(api.http.get("/metrics").text)
    labels, types = QUEUES + 2, len(TYPES) + 1
    assert 2 * labels * types + REASONS * labels + 2 * QUEUES + 4 + OF_REDIS >= shown.series
    registered = set(deployment.redis.hkeys(deployment.keys.queues))
    assert registered | {"default", "invalid", "other"} >= shown.values_of("queue")
    assert TYPES | {"unknown"} >= shown.values_of("task_type")
    assert accepted == sum(shown.of("dtq_tasks_submitted_total").values())
    assert sum(shown.of("dtq_ingest_rejected_total").values()) > statuses[400] / 4
