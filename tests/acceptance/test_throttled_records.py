"""Three real workers and the rate limiter complete records while half of all calls get a 429."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from gemini_emulator import Emulator
from gemini_emulator.recorded_rows import prove_log
from pipeline.models import Batch, Chunk, Job, ProviderCall, ShellFile
from pipeline.ratelimit import RateLimiter
from tests.support import records
from tests.support.record_runs import astray, ended
from tests.support.rows import crashes_of
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, children, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-throttled"),
    pytest.mark.slow(reason="five whole records at half of the quota: 25 s"),
]

RECORDS, VISITS, WORKERS = 5, 11, 3


def assert_counted(pool: WorkerCommand, limited: int) -> None:
    """Assert that each limited call was stored, redistributed, and set or joined a cooldown."""
    state = RateLimiter.for_("gemini", django_settings.GEMINI_MODEL).state()
    counters = state.counters
    assert (state.in_flight, state.limited_items) == (0, 0)
    assert counters.rate_limited_items_stored == counters.rate_limited_items_redistributed > 0
    # If a busy machine delays Redis by half a second, workers continue without Redis, and do not
    # report the limited calls of that time.
    if "This process starts at most" not in pool.printed():
        assert counters.rate_limited_items_stored == limited
        assert counters.rate_limit_generations + counters.rate_limit_participants == limited


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
    assert limited == sum(line.outcome == "429" for line in log) > 50
    assert_counted(pool, limited)
    for each in received:
        assert not astray(ShellFile.objects.get(id=each.shell_file_id))


def test_a_worker_killed_in_the_cooldown_that_it_set_costs_no_attempt(
    start_pool: Callable[..., WorkerCommand],
    scheduler: WorkerCommand,
    module_redis: Any,
    tmp_path: Path,
) -> None:
    module_redis.flushdb()
    files = [short_record(tmp_path / f"{n}.pdf", 2, patient=f"P{n}") for n in range(WORKERS)]
    only_one = {"fault": "429", "number": 1, "retry_after_s": 2.5}
    limiter = RateLimiter.for_("gemini", django_settings.GEMINI_MODEL)

    with Emulator(faults=[only_one], latency="0.05/call") as emulator:
        pool = start_pool(
            MEDPROC_PROVIDER="gemini", GEMINI_BASE_URL=emulator.url, WORKER_CONCURRENCY=WORKERS
        )
        received = [records.submit(file) for file in files]
        ends = until(lambda: limiter.state().cooldown_until) or 0.0
        (limited,) = (line for line in emulator.log() if line.outcome == "429")
        chunk = Chunk.objects.get(id=limited.item_token)
        job = Job.objects.get(shell_file=chunk.discovery_session.shell_file)
        os.kill(children(int(job.worker_id.split("-")[-2]))[0], signal.SIGKILL)
        jobs = ended(*received)
        log = emulator.log()
        pool.stop()

    assert [(each.status, each.last_error) for each in jobs] == [("completed", None)] * WORKERS
    # The step keeps the count itself, and the count ends with the step.
    assert len(crashes_of(Job.objects.get(id=job.id))) == 1
    assert prove_log(log).findings == []
    first, again = (line for line in log if line.item_token == limited.item_token)
    assert (first, again.outcome) == (limited, "ok")
    assert again.time >= ends
    assert_counted(pool, 1)
