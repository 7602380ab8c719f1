"""Half of all calls limited: records through three real workers, and the gate's own account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from pipeline.gate import Gate
from pipeline.management.proving import prove_log
from pipeline.models import Batch, Chunk, ProviderCall, ShellFile
from pipeline.provider.emulator import Emulator
from tests import records
from tests.running import astray, ended
from tests.short_records import short_record
from tests.workers import WorkerCommand

pytestmark = pytest.mark.xdist_group("acceptance-throttled")

RECORDS, VISITS, WORKERS = 5, 11, 3


def test_with_half_of_the_calls_limited_a_hundred_batches_come_through_once_on_one_attempt(
    start_pool: Callable[..., WorkerCommand], tmp_path: Path
) -> None:
    files = [short_record(tmp_path / f"{n}.pdf", VISITS, patient=f"P{n}") for n in range(RECORDS)]
    limit = {"fault": "429", "probability": 0.5, "retry_after_s": 0.02}

    with Emulator(faults=[limit], latency="0.05/call", seed=4) as emulator:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini",
            GEMINI_BASE_URL=emulator.url,
            WORKER_CONCURRENCY=WORKERS,
            PASS1_CONCURRENCY_LIMIT=7,
            PASS1_BATCH_MIN_PAGES=1,
            PASS1_BATCH_MAX_PAGES=1,
            PASS1_BATCH_HARD_CEILING=1,
            GATE_COOLDOWN_BASE_S=0.4,
            GATE_COOLDOWN_CAP_S=1.0,
        )
        received = [records.submit(file) for file in files]
        jobs = ended(*received)
        log = emulator.log()
        pool.stop()

    assert [(job.status, job.last_error) for job in jobs] == [("completed", None)] * RECORDS
    batches, chunks = Batch.objects.all(), Chunk.objects.all()
    assert batches.count() >= 100
    for rows in (batches, chunks):
        assert {(row.status, row.attempt_count) for row in rows} == {("succeeded", 1)}
    proof = prove_log(log)
    assert proof.findings == []
    assert proof.counts["accepted calls"] == batches.count() + chunks.count()
    outcomes = Counter(ProviderCall.objects.values_list("outcome", flat=True))
    limited = outcomes["RATE_LIMIT"]
    state = Gate.for_("gemini", django_settings.GEMINI_MODEL).state()
    counters = state.counters
    assert limited == sum(line.outcome == "429" for line in log) > 50
    assert counters.rate_limited_items_stored == limited
    assert counters.rate_limited_items_redistributed == limited
    assert counters.rate_limit_generations + counters.rate_limit_participants == limited
    assert counters.rate_limit_participants > 0
    assert (state.in_flight, state.parked_items) == (0, 0)
    for each in received:
        assert not astray(ShellFile.objects.get(id=each.shell_file_id))
