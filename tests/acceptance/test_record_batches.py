"""Real workers keep to the limit of a record batch, and forget no record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.core.states import JobStatus
from pipeline.models import Job, RecordBatch
from pipeline.operations import operator_actions
from pipeline.queueing.queues import queue_depths
from tests.support import records
from tests.support.record_runs import RECORD_PATIENCE_S
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, until

pytestmark = pytest.mark.xdist_group("acceptance-record-batches")

RECORDS = 5


def test_a_batch_that_allows_one_record_runs_them_one_after_the_other_to_its_end(
    start_pool: Callable[..., WorkerCommand], tmp_path: Path
) -> None:
    batch_id = operator_actions.record_batch_open(max_concurrent_tasks=1)
    for number in range(RECORDS):
        records.submit(short_record(tmp_path / f"{number}.pdf", 1), record_batch_id=batch_id)
    operator_actions.record_batch_close(batch_id, RECORDS)
    running: list[int] = []

    def look() -> bool:
        running.append(Job.objects.filter(status=JobStatus.PROCESSING).count())
        return bool(RecordBatch.objects.get(id=batch_id).completed_at)

    # No scheduler runs here: an ended record wakes the next waiting record.
    start_pool(WORKER_CONCURRENCY=2, PAGES_CONCURRENCY=2)
    until(look, RECORD_PATIENCE_S)

    batch = RecordBatch.objects.get(id=batch_id)
    assert max(running) == 1
    assert (batch.status, batch.records_completed) == ("completed", RECORDS)
    assert (batch.pages_total, batch.encounters_total) == (RECORDS, RECORDS)
    until(lambda: not any(queue_depths().values()))
