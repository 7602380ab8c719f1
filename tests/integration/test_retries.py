"""Failed work returns to the queue, by an operator's retry or automatically."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from pipeline.core.errors import ErrorCode, UserError
from pipeline.core.states import JobStatus, Step
from pipeline.execution.step_result import StepFailed
from pipeline.models import (
    Batch,
    Chunk,
    EncounterResult,
    Entity,
    Job,
    ProviderCall,
    Session,
    Summary,
)
from pipeline.operations import operator_actions
from pipeline.operations.operator_actions import Selection
from pipeline.queueing.queues import queue_depths
from pipeline.stages.intake import Received
from pipeline.transitions import Failure, claim
from pipeline.workers import run_step
from tests.support import records
from tests.support.rows import a_deadline, a_job, an_encounter, columns
from tests.support.short_records import short_record

TABLES = (
    "job_queue",
    "ai_processing_sessions",
    "ai_processing_summary",
    "pass1_encounter_results",
    "pass1_batch_results",
    "pass1_entity_detections",
    "provider_calls",
)


@pytest.fixture
def one_page_batches(settings: Any) -> Any:
    """Make each page a separate batch."""
    settings.PASS1_BATCH_MIN_PAGES = 1
    settings.PASS1_BATCH_MAX_PAGES = 1
    settings.PASS1_BATCH_HARD_CEILING = 1
    return settings


def discovered(folder: Path, visits: int = 3, pages: int = 2) -> Received:
    """Run a record through Pass 0.5 with the local engine."""
    received = records.submit(short_record(folder / f"{visits}.pdf", visits, pages=pages))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    return received


def asked(faults: Sequence[Mapping[str, Any]] = ()) -> list[UUID]:
    """Run Pass 1 once with a service that plays these faults, and return the requested batches."""
    before = set(ProviderCall.objects.values_list("id", flat=True))
    if faults:
        with records.through_emulator(faults), records.no_breaker(), records.patient():
            run_step.run_step("pass1")
    else:
        run_step.run_step("pass1")
    calls = ProviderCall.objects.exclude(id__in=before).filter(step=Step.PASS1)
    return [batch for batch in calls.values_list("work_item_id", flat=True) if batch]


def bad_json(*pages: int) -> list[Mapping[str, Any]]:
    return [{"fault": "bad-json", "kind": "entities", "page": page} for page in pages]


def state() -> list[Any]:
    found: list[Any] = []
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT to_jsonb(t) FROM {table} t ORDER BY t.id")  # noqa: S608
            found += cursor.fetchall()
    return found


@pytest.fixture
def failed(
    db: None, one_page_batches: Any, redis_db: redis.Redis, tmp_path: Path
) -> tuple[Received, list[Batch]]:
    """Return a record whose first two encounters failed, and its three failed batches.

    The first encounter has two failed batches, the second encounter has one.
    """
    received = discovered(tmp_path)
    asked(bad_json(1, 2, 3))
    return received, list(Batch.objects.order_by("page_range_start")[:3])


def results() -> list[str]:
    """Return the status of each encounter's result, in the order of the encounters."""
    rows = EncounterResult.objects.order_by("healthcare_encounter__encounter_index")
    return list(rows.values_list("status", flat=True))


def test_a_batch_an_encounter_or_a_record_is_requested_again_and_nothing_else(
    failed: tuple[Received, list[Batch]],
) -> None:
    received, (first, second, third) = failed
    assert results() == ["failed", "failed", "succeeded"]

    operator_actions.item_retry(first.id, reason="look at one", by="ops")
    assert asked() == [first.id]
    assert results() == ["failed", "failed", "succeeded"]

    operator_actions.encounter_retry(first.healthcare_encounter_id, reason="the rest of it")
    assert asked() == [second.id]
    assert results() == ["succeeded", "failed", "succeeded"]

    operator_actions.record_retry(received.shell_file_id, reason="the provider recovered")
    assert asked() == [third.id]
    assert results() == ["succeeded", "succeeded", "succeeded"]


def test_a_retried_batch_gets_new_attempts_and_keeps_the_history_of_the_old_ones(
    failed: tuple[Received, list[Batch]],
) -> None:
    received, retried = failed
    names = ("status", "attempt_count", "max_attempts")

    operator_actions.record_retry(received.shell_file_id, reason="the provider recovered")
    asked()

    for batch in retried:
        batch.refresh_from_db()
        assert columns(batch, *names) == dict(zip(names, ("succeeded", 4, 6), strict=True))
        assert len(batch.transient_error_history or []) == 3
    for batch in Batch.objects.exclude(id__in=[batch.id for batch in retried]):
        assert columns(batch, *names) == dict(zip(names, ("succeeded", 1, 3), strict=True))


def test_a_record_that_completes_after_a_retry_shows_no_error(
    failed: tuple[Received, list[Batch]],
) -> None:
    received, _ = failed

    operator_actions.record_retry(received.shell_file_id, reason="the provider recovered")
    asked()

    job = Job.objects.get(id=received.job_id)
    assert columns(job, "status", "error_code") == {"status": "completed", "error_code": None}
    summary = columns(Summary.objects.get(), "processing_status", "error_code")
    assert summary == {"processing_status": "pass1_only", "error_code": None}
    session = columns(Session.objects.get(), "session_status", "failure_pass")
    assert session == {"session_status": "completed", "failure_pass": None}


def test_the_history_of_a_job_says_who_retried_it_and_why(
    failed: tuple[Received, list[Batch]],
) -> None:
    received, (first, *_) = failed

    operator_actions.item_retry(first.id, reason="look at one", by="ops")
    asked()
    operator_actions.encounter_retry(first.healthcare_encounter_id, reason="the rest of it")
    asked()
    operator_actions.record_retry(received.shell_file_id, reason="the provider recovered")
    asked()

    history = (Job.objects.get(id=received.job_id).error_details or {})["history"]
    assert [entry["event"] for entry in history] == ["failed", "retried"] * 3
    assert [(e["reason"], e.get("by")) for e in history if e["event"] == "retried"] == [
        ("look at one", "ops"),
        ("the rest of it", None),
        ("the provider recovered", None),
    ]
    assert all(entry["at"] for entry in history)
    assert Session.objects.get().retry_count == 3


@pytest.mark.django_db
@pytest.mark.usefixtures("one_page_batches", "redis_db")
def test_a_retried_record_does_not_seem_to_have_failed_and_has_nothing_to_retry(
    tmp_path: Path,
) -> None:
    received = discovered(tmp_path)
    asked(bad_json(1))
    operator_actions.record_retry(received.shell_file_id, reason="once")
    before = state()

    with pytest.raises(UserError, match="the job is waiting for a worker already"):
        operator_actions.record_retry(received.shell_file_id, reason="twice")

    assert state() == before
    job, session, summary = Job.objects.get(), Session.objects.get(), Summary.objects.get()
    assert (job.status, job.current_step, job.error_code) == ("pending", "pass1", None)
    assert (session.session_status, session.pass1_status, session.error_code) == (
        "processing",
        "pending",
        None,
    )
    assert (summary.processing_status, summary.failure_stage, summary.error_drill_down) == (
        "initialized",
        None,
        None,
    )
    assert not Batch.objects.filter(status="failed").exists()
    assert not EncounterResult.objects.filter(status="failed").exists()


@pytest.mark.usefixtures("cloned_db")
def test_fifty_simultaneous_retries_have_one_effect(
    one_page_batches: Any, redis_db: redis.Redis, tmp_path: Path
) -> None:
    received = discovered(tmp_path)
    asked(bad_json(1))
    redis_db.flushdb()
    dispatch_no = Job.objects.get().dispatch_no
    done: list[bool] = []
    together = threading.Barrier(50)

    def click() -> None:
        together.wait()
        try:
            operator_actions.record_retry(received.shell_file_id, reason="quick")
            done.append(True)
        except UserError:
            done.append(False)
        connection.close()

    clicks = [threading.Thread(target=click) for _ in range(50)]
    for each in clicks:
        each.start()
    for each in clicks:
        each.join()

    assert Counter(done) == {True: 1, False: 49}
    assert Job.objects.get().dispatch_no == dispatch_no + 1
    assert queue_depths([Step.PASS1]) == {Step.PASS1: 1}
    assert Session.objects.get().retry_count == 1
    assert asked() == [Batch.objects.get(page_range_start=1).id]


@pytest.mark.django_db
@pytest.mark.usefixtures("one_page_batches", "redis_db")
def test_a_dry_run_says_what_a_retry_would_do_and_changes_nothing(
    tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    received = discovered(tmp_path)
    asked(bad_json(1, 2))
    completed = discovered(tmp_path, visits=1)
    asked()
    before = state()

    with pytest.raises(SystemExit) as exited:
        call_command("retry", error_code="PARSE_JSON", since="1h", dry_run=True, json=True)

    shown = json.loads(capsys.readouterr().out)
    assert exited.value.code == 0
    assert state() == before
    assert [each["shell_file_id"] for each in shown["eligible"]] == [str(received.shell_file_id)]
    assert (shown["calls"], shown["pages"], shown["encounters"]) == (2, 2, 1)
    assert shown["input_tokens"] > 500
    assert shown["same_versions"] is False, "it would go to the local engine"
    with pytest.raises(CommandError, match="the job is complete already"):
        call_command("retry", record=str(completed.shell_file_id), reason="why not")

    settings.GEMINI_RPM = 4
    with records.through_emulator():
        found = operator_actions.retry_preview(Selection(record=received.shell_file_id))
    assert (found.same_versions, found.quota_minutes) == (True, 0.5)
    assert found.cost_usd > 0


@pytest.mark.django_db
@pytest.mark.usefixtures("one_page_batches", "redis_db")
def test_a_retry_by_code_takes_what_failed_with_it_and_says_why_it_leaves_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    received = discovered(tmp_path)
    asked([*bad_json(1), {"fault": "blocked", "kind": "entities", "page": 3}])
    gone = a_job(
        status=JobStatus.DEAD,
        completed_at=timezone.now(),
        error_details={"underlying_error": "PARSE_JSON"},
    )
    a_job(status=JobStatus.FAILED, completed_at=timezone.now(), error_code="INPUT_INVALID")

    found = operator_actions.retry_preview(Selection(error_code=ErrorCode.PARSE_JSON))
    call_command("retry", error_code="PARSE_JSON", reason="a better prompt")

    assert [each.job_id for each in found.eligible] == [received.job_id]
    assert [(each.job_id, each.reason) for each in found.ineligible] == [
        (gone.id, "the job is a dead letter; use requeue")
    ]
    assert "Retried 1 record." in capsys.readouterr().out
    statuses = dict(Batch.objects.values_list("page_range_start", "status"))
    assert (statuses[1], statuses[3]) == ("pending", "failed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record": "ab12", "reason": "r"}, "Enter at least 6 digits"),
        ({"record": "0" * 32, "reason": "r"}, "No object has the id"),
        ({"error_code": "API_5XX", "since": "soon", "reason": "r"}, "not a time"),
        ({"record": "0" * 32, "since": "1h", "reason": "r"}, "--since and --step need"),
        ({"error_code": "API_5XX"}, "give a reason"),
        ({"error_code": "API_5XX", "reason": "r"}, "nothing to retry: all work that failed with"),
    ],
)
@pytest.mark.django_db
def test_a_retry_that_cannot_be_is_refused_in_one_line(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(CommandError, match=message) as refused:
        call_command("retry", **options)

    assert "\n" not in str(refused.value)


@pytest.mark.django_db
@pytest.mark.usefixtures("one_page_batches", "redis_db")
def test_a_job_that_waits_for_its_own_retry_says_why_and_until_when(
    tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.JOB_MAX_RETRIES, settings.PASS1_MAX_RETRIES = 2, 2
    received = discovered(tmp_path)
    asked(bad_json(1))

    call_command("explain", str(received.shell_file_id))

    explained = capsys.readouterr().out.splitlines()[0]
    assert "encounter 1, batch 1 of 2 (page 1): PARSE_JSON ×2" in explained
    assert "for retry 1 of 2." in explained
    waiting = Job.objects.get(id=received.job_id)
    assert columns(waiting, "status", "retry_count", "park_reason") == {
        "status": JobStatus.PARKED,
        "retry_count": 1,
        "park_reason": "retry 1 of 2 after PARSE_JSON",
    }
    assert waiting.parked_until is not None
    # Five minutes at the suite's time scale.
    assert round((waiting.parked_until - waiting.updated_at).total_seconds()) == 15
    assert operator_actions.parked_release() == 0


@pytest.mark.django_db
@pytest.mark.usefixtures("one_page_batches", "redis_db")
def test_a_failed_job_is_retried_by_itself_after_its_delay_and_then_fails(
    tmp_path: Path, settings: Any
) -> None:
    settings.JOB_MAX_RETRIES, settings.PASS1_MAX_RETRIES = 2, 2
    received = discovered(tmp_path)
    calls = [asked(bad_json(1))]

    for _ in range(2):
        Job.objects.update(parked_until=timezone.now())
        assert operator_actions.parked_release() == 1
        calls.append(asked(bad_json(1)))

    broken = Batch.objects.get(page_range_start=1)
    assert [Counter(each)[broken.id] for each in calls] == [2, 2, 2]
    assert [len(each) for each in calls] == [7, 2, 2]
    job = Job.objects.get(id=received.job_id)
    assert columns(job, "status", "retry_count", "error_code", "dead_letter_at", "crash_count") == {
        "status": JobStatus.FAILED,
        "retry_count": 2,
        "error_code": "MAX_RETRIES_EXCEEDED",
        "dead_letter_at": None,
        "crash_count": 0,
    }
    assert columns(broken, "status", "attempt_count", "max_attempts") == {
        "status": "failed",
        "attempt_count": 6,
        "max_attempts": 6,
    }
    assert [entry["event"] for entry in (job.error_details or {})["history"]] == [
        "retried by itself",
        "retried by itself",
        "failed",
    ]
    assert Entity.objects.exclude(healthcare_encounter_id=broken.healthcare_encounter_id).exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("one_page_batches", "redis_db")
def test_a_permanent_failure_is_left_to_the_operator(tmp_path: Path, settings: Any) -> None:
    settings.JOB_MAX_RETRIES = 3
    received = discovered(tmp_path)
    blocked: Mapping[str, Any] = {"fault": "blocked", "kind": "entities", "page": 3}
    first, third = 1, 3

    asked([*bad_json(first), blocked])
    Job.objects.update(parked_until=timezone.now())
    operator_actions.parked_release()
    by_itself = asked()
    failed = Job.objects.get(id=received.job_id)
    operator_actions.record_retry(received.shell_file_id, reason="the filter was changed")
    by_hand = asked()

    pages = dict(Batch.objects.values_list("id", "page_range_start"))
    assert [pages[each] for each in by_itself] == [first]
    assert (failed.status, failed.error_code) == (JobStatus.FAILED, "CONTENT_BLOCKED")
    assert failed.retry_count == 1
    assert [pages[each] for each in by_hand] == [third]
    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_db")
def test_a_job_in_backoff_can_be_retried_at_once_and_a_job_without_quota_cannot() -> None:
    later = timezone.now() + timedelta(hours=1)
    parked: dict[str, Any] = {"status": JobStatus.PARKED, "parked_until": later}
    failed = a_job(**parked, park_reason="retry 1 of 3", error_code="API_5XX", retry_count=1)
    held = a_job(**parked, park_reason="a quota is used up")

    operator_actions.record_retry(failed.shell_file_id, reason="it is back")
    with pytest.raises(UserError, match="continues by itself: a quota is used up"):
        operator_actions.record_retry(held.shell_file_id, reason="it is back")

    failed.refresh_from_db()
    assert (failed.status, failed.parked_until, failed.park_reason) == ("pending", None, None)
    assert Job.objects.get(id=held.id).status == JobStatus.PARKED


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_db")
def test_a_chunk_is_requested_again_alone_and_its_record_continues(
    tmp_path: Path, settings: Any
) -> None:
    settings.PASS05_CHUNK_PAGES = 2
    received = records.submit(short_record(tmp_path / "record.pdf", 6))
    run_step.run_step("pages")
    faults = [{"fault": "bad-json", "kind": "discovery", "page": page} for page in (1, 5)]
    with records.through_emulator(faults), records.no_breaker():
        run_step.run_step("pass05")
    failed, other = Chunk.objects.filter(status="failed").order_by("chunk_index")
    calls = ProviderCall.objects.filter(step="pass05").count()

    found = operator_actions.retry_preview(Selection(item=failed.id))
    operator_actions.item_retry(failed.id, reason="one first")
    run_step.run_step("pass05")
    one_left = list(Chunk.objects.filter(status="failed"))
    operator_actions.record_retry(received.shell_file_id, reason="then the other")
    records.run_record(received)

    assert (found.calls, found.pages) == (1, 2)
    assert found.input_tokens > 100
    assert one_left == [other]
    again = ProviderCall.objects.filter(step="pass05").order_by("created_at")[calls:]
    assert [call.work_item_id for call in again] == [failed.id, other.id]
    assert Job.objects.get().status == JobStatus.COMPLETED


@pytest.mark.django_db
@pytest.mark.usefixtures("redis_db")
def test_a_step_that_broke_as_a_whole_is_retried_and_its_failed_rows_are_left() -> None:
    job = a_job(max_retries=1)
    _, (batch,) = an_encounter(job)
    Batch.objects.update(status="failed", error_code="CONTENT_BLOCKED")
    broken = StepFailed(failure=Failure(code=ErrorCode.DB_ERROR, message="the database failed"))

    ends = []
    for _ in range(2):
        lease = claim(Step.PASS1, "w")
        assert lease is not None
        run_step._end(lease, a_deadline(), broken)
        job.refresh_from_db()
        ends.append((job.status, job.retry_count, job.error_code))
        operator_actions.job_release([job.id])

    assert ends == [("parked", 1, "DB_ERROR"), ("failed", 1, "DB_ERROR")]
    batch.refresh_from_db()
    assert batch.status == "failed"
