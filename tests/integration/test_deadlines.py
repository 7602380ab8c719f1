"""A step keeps its results until its deadline, and then kills and reports hanging calls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.utils import timezone

from gemini_emulator import Emulator
from pipeline.core import deadline
from pipeline.core.states import JobStatus, Step
from pipeline.execution import admission, executor
from pipeline.execution.preemption import PREEMPTED
from pipeline.execution.shutdown import STOP
from pipeline.execution.step_result import SIGTERM, StepFailed, StepInterrupted
from pipeline.models import Batch, Job, Page, ShellFile, Summary
from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry, entry_id
from pipeline.stages import pages
from pipeline.transitions import claim
from pipeline.workers import run_step
from pipeline.workers.shared_step import SHARED_STEP
from tests.support import records
from tests.support.rows import a_deadline, a_job
from tests.support.short_records import short_record
from tests.support.workers import WorkerCommand, is_alive, until

LONG_S = 2400.0


def _batches(job: Job) -> list[Any]:
    rows = Batch.objects.filter(pass1_encounter_result__shell_file_id=job.shell_file_id)
    return list(rows.order_by("page_range_start"))


@pytest.mark.django_db
def test_a_step_out_of_time_is_requeued_if_it_has_progressed_and_else_fails(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = LONG_S
    received = records.submit(short_record(tmp_path / "record.pdf", 6))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    settings.PASS1_MAX_RETRIES = settings.PASS1_CONCURRENCY_LIMIT = 1
    settings.MEDPROC_PROVIDER = "gemini"
    monkeypatch.setattr(executor, "step_time_s", lambda *_, **__: 5.0)

    # The third batch that is asked about hangs, in each run.
    with Emulator(latency_map={"#3": 60.0}, answers="minimal") as emulator:
        settings.GEMINI_BASE_URL = emulator.url
        run_step.run_step("pass1")
        job = Job.objects.get(id=received.job_id)

        assert (job.status, job.error_code, job.step_deadline_at) == ("pending", None, None)
        assert (job.crash_count, job.retry_count, job.dispatch_no) == (0, 0, 3)
        (requeued,) = (job.error_details or {})["history"]
        assert requeued["event"] == "requeued by itself"
        assert requeued["message"].startswith("pass1 used up its 5 s with 2 of 6 batches ended;")

        run_step.run_step("pass1")

    job = Job.objects.get(id=received.job_id)
    rows = _batches(job)
    kept = {row.id for row in rows if row.status == "succeeded"}
    assert len(kept) == 2
    assert (job.status, job.error_code) == (JobStatus.FAILED, "DEADLINE_EXCEEDED")
    assert "a retry goes on from there; waited" in (job.last_error or "")
    assert "; calls in flight for " in (job.last_error or "")
    assert (job.step_deadline_at, SHARED_STEP.left_s) == (None, None)
    assert Summary.objects.get(shell_file=job.shell_file_id).error_code == "DEADLINE_EXCEEDED"
    assert ShellFile.objects.get(id=job.shell_file_id).status == "pass05_complete"
    assert {row.status for row in rows} == {"succeeded", "pending"}
    assert {row.attempt_count for row in rows if row.id not in kept} == {0}
    monkeypatch.undo()
    Job.objects.filter(id=job.id).update(status=JobStatus.PENDING)
    with Emulator() as emulator:
        settings.GEMINI_BASE_URL = emulator.url
        run_step.run_step("pass1")
        asked = {line.item_token for line in emulator.log()}
    assert Job.objects.get(id=job.id).status == JobStatus.COMPLETED
    assert asked == {row.id.hex for row in rows if row.id not in kept}


@pytest.mark.django_db
def test_pages_out_of_time_are_requeued_while_each_run_reads_some(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = records.submit(records.LAB)
    # The reserve is the whole deadline, so each run ends after its first page.
    monkeypatch.setattr(deadline, "SOFT_SHARE", 0.0)

    run_step.run_step("pages")

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.crash_count, job.retry_count) == (JobStatus.PENDING, 0, 0)
    assert ShellFile.objects.get(id=received.shell_file_id).pages_read == 1
    monkeypatch.undo()
    run_step.run_step("pages")
    assert ShellFile.objects.get(id=received.shell_file_id).pages_read == 5


@pytest.mark.django_db
def test_an_outage_that_outlasts_the_deadline_is_left_out_of_it(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = LONG_S
    received = records.submit(short_record(tmp_path / "record.pdf", 6))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    # The step has 3.2 s: three attempts of 1 s, and the backoffs between these attempts.
    settings.CALL_DEADLINE_S, settings.STEP_DEADLINE_MIN_S = 20.0, 1.0
    monkeypatch.setattr(admission, "PARK_AFTER_S", LONG_S)

    with records.through_emulator([{"fault": "503", "window": (0.0, 4.5)}]):
        run_step.run_step("pass1")

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == (JobStatus.COMPLETED, None)
    assert {row.attempt_count for row in _batches(job)} == {1}


@pytest.mark.usefixtures("cloned_db")
def test_a_horse_that_hangs_beyond_its_deadline_is_killed_and_its_row_says_why(
    start_worker: Callable[..., WorkerCommand],
    redis_db: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")
    job = a_job()
    queues.push("pass1", entry_id(job.id, "pass1", 0), entry_id(job.id, "pass1", 1))

    worker = start_worker("hang_beyond_deadline", "rqworker", "pass1", settings={"LEASE_S": LONG_S})
    horse = worker.wait_for("began")[0]["pid"]

    until(lambda: Job.objects.get(id=job.id).status == JobStatus.FAILED)
    job.refresh_from_db()
    assert not is_alive(horse)
    assert (job.error_code, job.crash_count) == ("DEADLINE_EXCEEDED", 0)
    assert "hung beyond its deadline" in (job.last_error or "")
    worker.wait_for("began", 2)
    assert worker.stop() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("ends", ["stopped", "made room", "out of time"])
def test_pages_that_were_read_are_kept_when_a_step_ends_in_the_middle_of_a_chunk(
    ends: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    received = records.submit(records.LAB)
    lease = claim(Step.PAGES, "w")
    assert lease is not None
    if ends == "stopped":
        STOP.request()
    elif ends == "made room":
        settings.PREEMPT_AFTER_S = 0.0
        monkeypatch.setattr(pages, "SIZE_BOUNDS", (1, 2))
        a_job(step=Step.PAGES, available_at=timezone.now() - timedelta(minutes=1))
    else:
        # The reserve is the whole deadline, so the soft deadline has passed at the start.
        monkeypatch.setattr(deadline, "SOFT_SHARE", 0.0)

    try:
        result = pages.run(lease, a_deadline())
    finally:
        STOP.reset()

    record = ShellFile.objects.get(id=received.shell_file_id)
    assert (record.pages_read, record.page_count) == (1, 5)
    assert list(Page.objects.values_list("page_number", flat=True)) == [1]
    if ends == "out of time":
        assert isinstance(result, StepFailed)
        assert result.failure.code == "DEADLINE_EXCEEDED"
    else:
        reason = {"stopped": SIGTERM, "made room": PREEMPTED}[ends]
        assert result == StepInterrupted(reason=reason)


def test_a_chunk_of_pages_has_the_time_that_its_pages_are_allowed(settings: Any) -> None:
    settings.TIME_SCALE = 1.0

    assert pages.deadline_s(1) == settings.STEP_DEADLINE_MIN_S
    assert pages.deadline_s(50) == 10 + 50 * 20
