"""A preempted large record spends no attempt, and goes on after the small record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gemini_emulator import Emulator
from pipeline.models import Batch, Job
from pipeline.workers import run_step
from tests.support import records
from tests.support.record_runs import ended
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-preemption"),
    pytest.mark.slow(reason="a large and a small record through one worker: 13 s"),
]


def test_a_large_record_is_preempted_once_and_repeats_no_call(
    start_pool: Callable[..., WorkerCommand], tmp_path: Path
) -> None:
    large = records.submit(short_record(tmp_path / "large.pdf", 30))
    run_step.run_step("pages")
    Job.objects.filter(id=large.job_id).update(size_class=2)
    batches = Batch.objects.filter(pass1_encounter_result__shell_file_id=large.shell_file_id)

    with Emulator(latency="0.3/call") as emulator:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini",
            GEMINI_BASE_URL=emulator.url,
            WORKER_CONCURRENCY=1,
            PAGES_CONCURRENCY=1,
            PASS1_CONCURRENCY_LIMIT=2,
            PREEMPT_AFTER_S=10.0,
        )
        until(lambda: batches.filter(status="succeeded").exists())
        small = records.submit(short_record(tmp_path / "small.pdf", 1))
        first, second = ended(small, large)
        pool.stop()
        asked = Counter(line.item_token for line in emulator.log())

    assert [first.status, second.status] == ["completed", "completed"]
    assert first.completed_at < second.completed_at
    assert {(row.status, row.attempt_count) for row in batches} == {("succeeded", 1)}
    assert set(asked.values()) == {1}
    # One claim each for Pass 0.5 and Pass 1, and one more after the preemption.
    assert (second.dispatch_no, second.crash_count) == (3, 0)
