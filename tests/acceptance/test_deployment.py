"""A new version runs with the Redis entries of the version before it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.states import JobStatus, Step
from pipeline.queueing.queues import RUN_STEP, entry_id
from tests.support import records
from tests.support.record_runs import ended
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand

pytestmark = [
    pytest.mark.xdist_group("acceptance-deployment"),
    pytest.mark.slow(reason="waits until the reconciler sends the refused entries again: 40 s"),
]

OLD_NAME = "pipeline.jobs.run_step"
"""The entry point of the version before. The module of this name no longer exists."""


def make_old(redis: Any, entry: str) -> None:
    """Return a waiting entry the dotted name of the version before."""
    key = f"rq:job:{entry}"
    name, instance, args, kwargs = json.loads(zlib.decompress(redis.hget(key, "data")))
    assert name == RUN_STEP
    redis.hset(key, "data", zlib.compress(json.dumps([OLD_NAME, instance, args, kwargs]).encode()))


def test_entries_with_an_old_entry_point_are_refused_and_sent_again(
    start_pool: Callable[..., WorkerCommand],
    scheduler: WorkerCommand,
    module_redis: Any,
    tmp_path: Path,
) -> None:
    received = [
        records.submit(short_record(tmp_path / f"{number}.pdf", visits=2)) for number in range(3)
    ]
    for record in received:
        make_old(module_redis, entry_id(record.job_id, Step.PAGES, record.dispatch_no))

    pool = start_pool(WORKER_CONCURRENCY=1, PAGES_CONCURRENCY=1)
    jobs = ended(*received)
    pool.stop()

    assert [job.status for job in jobs] == [JobStatus.COMPLETED] * 3
    assert [(job.crash_count, job.retry_count) for job in jobs] == [(0, 0)] * 3
