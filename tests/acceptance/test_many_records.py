"""Ten records meet three provider workers: three run, seven wait, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from gemini_emulator import Emulator
from pipeline.core.states import JOB_TERMINAL
from pipeline.models import Batch, Encounter, EncounterResult, Entity, Job, ShellFile
from pipeline.queueing.queues import queue_depths
from tests.support import records
from tests.support.record_runs import RECORD_PATIENCE_S, astray
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, until

pytestmark = [
    pytest.mark.xdist_group("acceptance-many"),
    pytest.mark.timeout(1200),
    pytest.mark.slow(reason="ten whole records through three workers"),
]

RECORDS, WORKERS = 10, 3


class WatchedRecords:
    """Ten running records, and repeated observations of them."""

    def __init__(self, ids: list[UUID]) -> None:
        self.ids = ids
        self.running: list[int] = []
        """Records in a provider step, at each look."""
        self.steps: list[dict[UUID, tuple[str, str]]] = []
        """Status and step of each job, at each look; only looks that saw a change."""

    def look(self) -> bool:
        """Observe once, and return whether all records have ended."""
        jobs = Job.objects.filter(id__in=self.ids)
        columns = jobs.values_list("id", "status", "current_step")
        seen = {id_: (status, step) for id_, status, step in columns}
        if not self.steps or seen != self.steps[-1]:
            self.steps.append(seen)
            held = [step for status, step in seen.values() if status == "processing"]
            self.running.append(sum(step != "pages" for step in held))
        return all(status in JOB_TERMINAL for status, _ in seen.values())


@pytest.fixture(scope="module")
def watched(
    start_pool: Callable[..., WorkerCommand], tmp_path_factory: pytest.TempPathFactory
) -> WatchedRecords:
    """Read the pages of ten records, then start the pool and observe until all ended.

    All records wait for Pass 0.5 when the pool starts. A slow reader of pages thus cannot be the
    reason why fewer than three records run at once.
    """
    folder = tmp_path_factory.mktemp("many")
    received = [
        records.submit(short_record(folder / f"{number}.pdf", 2 + number % 3))
        for number in range(RECORDS)
    ]
    watched = WatchedRecords([each.job_id for each in received])
    jobs = Job.objects.filter(id__in=watched.ids)
    reader = start_pool("--queues", "pages", "--workers", "2")
    until(lambda: jobs.filter(current_step="pass05").count() == RECORDS, RECORD_PATIENCE_S)
    reader.stop()
    with Emulator(latency="0.5/call") as emulator:
        start_pool(
            MEDPROC_PROVIDER="gemini",
            GEMINI_BASE_URL=emulator.url,
            WORKER_CONCURRENCY=WORKERS,
            PAGES_CONCURRENCY=2,
        )
        until(watched.look, RECORD_PATIENCE_S)
    return watched


def test_every_record_completes(watched: WatchedRecords) -> None:
    jobs = Job.objects.filter(id__in=watched.ids)

    assert [(job.status, job.last_error) for job in jobs] == [("completed", None)] * RECORDS
    assert not any(queue_depths().values())
    for record in ShellFile.objects.all():
        assert record.status == "pass1_complete"
        assert not astray(record)


def test_never_more_records_run_than_there_are_workers(watched: WatchedRecords) -> None:
    """Three records run while seven wait, and each ended record makes room for the next."""
    assert max(watched.running) == WORKERS
    looks = list(zip(watched.steps, watched.running, strict=True))
    first_full = next(seen for seen, running in looks if running == WORKERS)
    open_then = [step != "pages" and status == "processing" for status, step in first_full.values()]
    assert open_then.count(False) == RECORDS - WORKERS
    assert not any(status in JOB_TERMINAL for status, _ in first_full.values())
    after_an_end = [
        running
        for seen, running in looks
        if any(status in JOB_TERMINAL for status, _ in seen.values())
    ]
    assert max(after_an_end) == WORKERS


def test_started_records_finish_before_new_records_start(watched: WatchedRecords) -> None:
    """No record enters Pass 0.5 while as many wait for Pass 1 as there are workers."""
    for before, after in pairwise(watched.steps):
        waiting = sum(at == ("pending", "pass1") for at in before.values())
        began = [
            id_
            for id_, at in after.items()
            if at == ("processing", "pass05") and before[id_] == ("pending", "pass05")
        ]
        assert not began or waiting < WORKERS


def test_each_step_was_claimed_once(watched: WatchedRecords) -> None:
    jobs = Job.objects.filter(id__in=watched.ids)

    assert {(job.lease_gen, job.dispatch_no, job.crash_count) for job in jobs} == {(3, 2, 0)}


def test_first_records_are_done_while_the_last_still_wait(watched: WatchedRecords) -> None:
    ends: list[datetime] = sorted(
        job.completed_at for job in Job.objects.filter(id__in=watched.ids) if job.completed_at
    )
    first_calls = sorted(
        Batch.objects.filter(pass1_encounter_result__shell_file__jobs__in=watched.ids)
        .exclude(started_at=None)
        .values_list("started_at", flat=True)
    )

    assert ends[0] < first_calls[-1]


def test_nothing_of_one_record_is_another_ones(watched: WatchedRecords) -> None:
    wrong: list[Any] = []
    for entity in Entity.objects.select_related("healthcare_encounter", "processing_session"):
        record_ids = {
            entity.shell_file_id,
            entity.healthcare_encounter.shell_file_id,
            entity.processing_session.shell_file_id,
        }
        if len(record_ids) != 1 or entity.patient_id != entity.healthcare_encounter.patient_id:
            wrong.append(entity.id)
    results = EncounterResult.objects.all()
    per_record = {record.id: record.encounters.count() for record in ShellFile.objects.all()}

    assert not wrong
    assert sorted(per_record.values()) == sorted(2 + n % 3 for n in range(RECORDS))
    assert results.count() == Encounter.objects.count()
