"""The totals of a record are true after every kind of end, and the agreed queries say so.

Real steps make the rows. One path writes the totals, so each end of the table meets the same
checks: the queries 7.1 to 9.3, the summary, the metrics of each pass, and the overview.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from observability.metrics.throughput import rates
from pipeline.core.states import JobStatus, Step
from pipeline.execution import executor
from pipeline.execution.step_result import CANCELLED, StepInterrupted
from pipeline.models import (
    Batch,
    Chunk,
    Encounter,
    EncounterResult,
    Entity,
    Job,
    PageAssignment,
    ProviderCall,
    Session,
    Summary,
    selectors,
)
from pipeline.operations import operator_actions
from pipeline.providers.prompts import Question
from pipeline.queueing.reconciler import recover_expired
from pipeline.stages.intake import Received
from pipeline.transitions import Lease, claim, mark_hung, release_due
from pipeline.workers import run_step, stuck_steps
from tests.support import records, seed_sql
from tests.support.databases import as_owner
from tests.support.lying_model import lying_model
from tests.support.records import rows
from tests.support.rows import a_deadline
from tests.support.short_records import DRUG, short_record

pytestmark = [
    pytest.mark.xdist_group("totals"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("redis_db"),
]

WORKER = "worker-1-4711-ab12cd34"
BROKEN = {"fault": "bad-json", "kind": "entities", "page": 3}
LONG_S = 2400.0


@dataclass(frozen=True, kw_only=True)
class End:
    """One kind of end: how a record of three encounters meets it, and the expected rows."""

    reach: Callable[[Path, Any], UUID]
    job: str
    stage: str | None = "pass1"
    code: str | None
    encounters: dict[str, int] = field(default_factory=lambda: {"succeeded": 2, "pending": 1})
    batches: dict[str, int] | None = None
    """The batches by status, where they differ from the encounters."""
    lost: tuple[tuple[str, str], ...] = ()
    """Code and underlying code of each entry of the drill-down."""
    outage: tuple[tuple[str, int], ...] = ()
    failed: int = 0
    unfinished: int = 0
    held: int = 0
    has_run: bool = True
    """Whether a worker began a step."""


def _submitted(folder: Path, **options: Any) -> Received:
    received = records.submit(short_record(folder / "record.pdf", 3), **options)
    run_step.run_step("pages")
    run_step.run_step("pass05")
    return received


def _two_published(folder: Path, settings: Any) -> UUID:
    """Publish two of three encounters; the job is parked for the retry of the third."""
    settings.JOB_MAX_RETRIES = 1
    received = _submitted(folder)
    with records.through_emulator([BROKEN]), records.no_breaker():
        run_step.run_step("pass1")
    assert Job.objects.get(id=received.job_id).status == JobStatus.PARKED
    return received.shell_file_id


def _claimed(folder: Path, settings: Any) -> Lease:
    """Let a worker hold the step that goes on after two encounters were published."""
    record = _two_published(folder, settings)
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now())
    release_due()
    lease = claim(Step.PASS1, WORKER)
    assert lease is not None
    assert lease.shell_file_id == record
    return lease


def _completed(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    run_step.run_step("pass1")
    return received.shell_file_id


def _failed_encounter(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    with records.through_emulator([BROKEN]), records.no_breaker():
        run_step.run_step("pass1")
    return received.shell_file_id


def _out_of_time(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now())
    release_due()
    # The step has two seconds, and its only call hangs; a step that progresses would be requeued.
    with pytest.MonkeyPatch.context() as patch, records.through_emulator(latency="60/call"):
        patch.setattr(executor, "step_time_s", lambda *_, **__: 2.0)
        run_step.run_step("pass1")
    return record


def _stuck(folder: Path, settings: Any) -> UUID:
    lease = _claimed(folder, settings)
    # `end_steps_of` also closes the connection, and with it the transaction of this test.
    stuck_steps._end(*stuck_steps.leases_of(WORKER))
    return lease.shell_file_id


def _cancelled_in_its_step(folder: Path, settings: Any) -> UUID:
    lease = _claimed(folder, settings)
    assert not operator_actions.job_cancel(lease.job_id).is_ended
    run_step._end(lease, a_deadline(), StepInterrupted(reason=CANCELLED))
    return lease.shell_file_id


def _cancelled_while_parked(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    assert operator_actions.job_cancel(record).is_ended
    return record


def _worker_lost(folder: Path, settings: Any) -> UUID:
    lease = _claimed(folder, settings)
    for crash in range(3):
        Job.objects.filter(id=lease.job_id).update(lease_expires_at=timezone.now())
        (found,) = recover_expired(lease.job_id)
        assert found.is_dead is (crash == 2)
        claim(Step.PASS1, WORKER)
    return lease.shell_file_id


def _lost_in(step: Step, received: Received) -> UUID:
    """Lose the worker of a step three times."""
    for _ in range(3):
        lease = claim(step, WORKER)
        assert lease is not None
        assert lease.job_id == received.job_id
        expired = {"lease_expires_at": timezone.now(), "heartbeat_at": timezone.now()}
        Job.objects.filter(id=lease.job_id).update(**expired)
        (found,) = recover_expired(lease.job_id)
    assert found.is_dead
    return received.shell_file_id


def _lost_in_pages(folder: Path, settings: Any) -> UUID:
    return _lost_in(Step.PAGES, records.submit(short_record(folder / "record.pdf", 3)))


def _lost_in_pass05(folder: Path, settings: Any) -> UUID:
    received = records.submit(short_record(folder / "record.pdf", 3))
    run_step.run_step("pages")
    return _lost_in(Step.PASS05, received)


def _hung_three_times(folder: Path, settings: Any) -> UUID:
    lease: Lease | None = _claimed(folder, settings)
    assert lease is not None
    record = lease.shell_file_id
    for hang in range(3):
        assert lease is not None
        assert mark_hung(lease.job_id, lease.gen, WORKER)
        (found,) = recover_expired(lease.job_id)
        assert found.is_dead is (hang == 2)
        lease = claim(Step.PASS1, WORKER)
    return record


def _cancelled_before_its_first_step(folder: Path, settings: Any) -> UUID:
    received = records.submit(short_record(folder / "record.pdf", 3))
    assert operator_actions.job_cancel(received.shell_file_id).is_ended
    return received.shell_file_id


def _publication_refused(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    # The database takes the entities of two encounters and refuses those of the third.
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE pass1_entity_detections ADD CONSTRAINT refused"
            " CHECK (page_number < 3) NOT VALID"
        )
    run_step.run_step("pass1")
    return received.shell_file_id


def _foreign_encounter(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)

    def say(question: Question) -> dict[str, Any]:
        (page,) = (part.page for part in question.slices)
        entity = {"category": "medication", "page": page, "quote": DRUG, "name": DRUG}
        return {"entities": [entity], **({"encounter_id": str(uuid4())} if page == 3 else {})}

    with lying_model(say):
        run_step.run_step("pass1")
    return received.shell_file_id


def _completed_after_a_retry(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now())
    release_due()
    with records.through_emulator():
        run_step.run_step("pass1")
    return record


def _broken_plan(folder: Path, settings: Any) -> UUID:
    received = _submitted(folder)
    # The plan meets a page that is not there: an error of ours, which no code describes.
    with as_owner():
        PageAssignment.objects.filter(page_number=3).update(page_number=99)
    run_step.run_step("pass1")
    return received.shell_file_id


def _broken_step(folder: Path, settings: Any) -> UUID:
    record = _two_published(folder, settings)
    Batch.objects.filter(pass1_encounter_result__shell_file_id=record).update(spans=[[3]])
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now(), max_retries=0)
    release_due()
    with records.through_emulator():
        run_step.run_step("pass1")
    return record


def _unreadable(folder: Path, settings: Any) -> UUID:
    path = folder / "broken.pdf"
    path.write_bytes(b"%PDF-1.7\nnothing that a reader understands\n%%EOF\n")
    received = records.submit(path)
    run_step.run_step("pages")
    return received.shell_file_id


def _chunk_failed(folder: Path, settings: Any) -> UUID:
    received = records.submit(short_record(folder / "record.pdf", 3))
    run_step.run_step("pages")
    with records.through_emulator([{"fault": "bad-json", "kind": "discovery"}]):
        run_step.run_step("pass05")
    return received.shell_file_id


def _another_patient(folder: Path, settings: Any) -> UUID:
    records.run_record(_submitted(folder, patient_reference="ref-7"))
    other = short_record(folder / "other.pdf", 3, patient="Quarrington, Thaddeus B.")
    record: UUID = records.run_record(records.submit(other, patient_reference="ref-7")).id
    return record


SPENT = ("MAX_RETRIES_EXCEEDED", "PARSE_JSON")
ENDS = {
    "completed": End(
        reach=_completed, job="completed", stage=None, code=None, encounters={"succeeded": 3}
    ),
    "failed encounter": End(
        reach=_failed_encounter,
        job="failed",
        code="MAX_RETRIES_EXCEEDED",
        encounters={"succeeded": 2, "failed": 1},
        lost=(SPENT,),
        outage=(("PARSE_JSON", 1),),
        failed=1,
    ),
    "deadline": End(
        reach=_out_of_time,
        job="failed",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "hung beyond its deadline": End(
        reach=_stuck,
        job="failed",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "cancelled in its step": End(
        reach=_cancelled_in_its_step,
        job="cancelled",
        code="CANCELLED",
        lost=(("CANCELLED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "parked and then cancelled": End(
        reach=_cancelled_while_parked,
        job="cancelled",
        code="CANCELLED",
        lost=(("CANCELLED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "worker lost": End(
        reach=_worker_lost,
        job="dead",
        code="WORKER_LOST",
        lost=(("WORKER_LOST", "PARSE_JSON"),),
        unfinished=1,
    ),
    "hung three times": End(
        reach=_hung_three_times,
        job="dead",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "worker lost in pages": End(
        reach=_lost_in_pages,
        job="dead",
        stage="pages",
        code="WORKER_LOST",
        encounters={},
        lost=(("WORKER_LOST", "WORKER_LOST"),),
        unfinished=1,
    ),
    "worker lost in pass05": End(
        reach=_lost_in_pass05,
        job="dead",
        stage="pass05",
        code="WORKER_LOST",
        encounters={},
        lost=(("WORKER_LOST", "WORKER_LOST"),),
        unfinished=1,
    ),
    "cancelled before its first step": End(
        reach=_cancelled_before_its_first_step,
        job="cancelled",
        stage="pages",
        code="CANCELLED",
        encounters={},
        lost=(("CANCELLED", "CANCELLED"),),
        unfinished=1,
        has_run=False,
    ),
    "publication refused": End(
        reach=_publication_refused,
        job="failed",
        code="DB_ERROR",
        encounters={"succeeded": 2, "failed": 1},
        batches={"succeeded": 3},
        lost=(("DB_ERROR", "DB_ERROR"),),
        unfinished=1,
    ),
    "foreign encounter": End(
        reach=_foreign_encounter,
        job="failed",
        code="ENCOUNTER_NOT_FOUND",
        encounters={"succeeded": 2, "failed": 1},
        lost=(("ENCOUNTER_NOT_FOUND", "ENCOUNTER_NOT_FOUND"),),
        outage=(("ENCOUNTER_NOT_FOUND", 1),),
        failed=1,
    ),
    "completed after a retry": End(
        reach=_completed_after_a_retry,
        job="completed",
        stage=None,
        code=None,
        encounters={"succeeded": 3},
    ),
    "internal error before the plan": End(
        reach=_broken_plan,
        job="failed",
        code="INTERNAL_ERROR",
        encounters={},
        lost=(("INTERNAL_ERROR", "INTERNAL_ERROR"),),
        unfinished=1,
    ),
    "internal error in a step": End(
        reach=_broken_step,
        job="failed",
        code="INTERNAL_ERROR",
        lost=(("INTERNAL_ERROR", "PARSE_JSON"),),
        unfinished=1,
    ),
    "pages failed": End(
        reach=_unreadable,
        job="failed",
        stage="pages",
        code="INPUT_INVALID",
        encounters={},
        lost=(("INPUT_INVALID", "INPUT_INVALID"),),
        unfinished=1,
    ),
    "chunk failed": End(
        reach=_chunk_failed,
        job="failed",
        stage="pass05",
        code="MAX_RETRIES_EXCEEDED",
        encounters={},
        lost=(SPENT,),
        failed=1,
    ),
    "another patient": End(
        reach=_another_patient, job="completed", stage=None, code=None, encounters={}, held=3
    ),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_account_is_true_after_every_end(end: End, tmp_path: Path, settings: Any) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = LONG_S

    record = end.reach(tmp_path, settings)

    job = Job.objects.get(shell_file_id=record)
    assert (job.status, job.error_code) == (end.job, end.code)
    _queries_are_right(str(record), end)
    _rows_agree(record, end)
    _metrics_agree(record)
    found = rates(timezone.now())
    assert (found.failed, found.unfinished) == (end.failed, end.unfinished)
    if end.failed or end.unfinished:
        assert found.success_share is not None
        assert found.success_share < 1


def _queries_are_right(record: str, end: End) -> None:
    assert rows(seed_sql.SUMMARY, record) == [
        {
            "processing_status": "pass1_only" if end.code is None else "failed",
            "failure_stage": end.stage,
            "error_code": end.code,
            "overall_success": end.code is None,
        }
    ]
    failed = rows(seed_sql.FAILED_ENCOUNTERS, record)
    assert len(failed) == end.encounters.get("failed", 0)
    for encounter in failed:
        batches = rows(seed_sql.FAILED_BATCHES, str(encounter["healthcare_encounter_id"]))
        assert len(batches) == encounter["batches_failed"]
        # An encounter whose publication is refused has no failed batch.
        assert bool(batches) is (end.batches is None)
        first = batches[0]["batch_index"] if batches else None
        assert encounter["failure_batch_index"] == first
    path = rows(seed_sql.FULL_PATH, record, record, record)
    levels: dict[str, Counter[str]] = {"encounter": Counter(), "batch": Counter()}
    for row in path[:-1]:
        levels[row["level"]][row["status"]] += 1
    assert (path[-1]["level"], path[-1]["error_code"]) == ("shell_file", end.code)
    batches_of = end.encounters if end.batches is None else end.batches
    assert levels == {"encounter": Counter(end.encounters), "batch": Counter(batches_of)}
    details = {row["detail"] for row in path if row["level"] == "encounter"}
    assert details <= {"batches: 0/1 succeeded", "batches: 1/1 succeeded"}
    transient = Batch.objects.filter(had_transient_failure=True, status="succeeded")
    assert len(rows(seed_sql.TRANSIENT)) == transient.count()
    assert rows(seed_sql.STALE_CANDIDATES) == []
    outage = rows(seed_sql.OUTAGE, record)
    assert tuple((row["root_cause"], row["failed_count"]) for row in outage) == end.outage


def _rows_agree(record: UUID, end: End) -> None:
    summary = Summary.objects.get(shell_file_id=record)
    session = Session.objects.get(shell_file_id=record)
    job = Job.objects.get(shell_file_id=record)
    visible = Entity.objects.filter(shell_file_id=record, accepted=True)
    assert summary.entities_extracted_total == visible.count()
    assert bool(summary.entities_extracted_total) is bool(end.encounters.get("succeeded"))
    drill_down = summary.error_drill_down or {}
    listed = drill_down.get("failures", [])
    assert [(each["error_code"], each["underlying_error"]) for each in listed] == list(end.lost)
    assert len(drill_down.get("held", ())) == end.held
    if end.code:
        assert session.error_context is not None
        assert session.error_context["failures"] == listed
        assert (session.failure_pass, session.error_code) == (end.stage, end.code)
        assert session.failure_encounter_id == summary.failure_encounter_id
    passes = [getattr(session, f"{step}_status") for step in list(Step)[1:]]
    assert session.completed_steps == passes.count("completed")
    if end.has_run:
        assert session.processing_started_at >= job.created_at
    assert (summary.processing_started_at is not None) is end.has_run
    called = ProviderCall.objects.filter(processing_session=session).order_by("started_at")
    last = called.last()
    if last is not None:
        assert session.ai_model_name == last.model
        assert session.model_config["steps"][last.step]["provider"] == last.provider
    assert (job.max_retries, session.max_retries) == (settings.JOB_MAX_RETRIES,) * 2
    calls = selectors.call_totals(session.id)
    assert summary.total_tokens_used == calls["total_tokens"]
    assert summary.total_cost_usd == calls["cost_usd"]
    ran_ms = sum(job.step_run_ms.values())
    assert summary.total_processing_time_ms == ran_ms
    assert bool(ran_ms) is end.has_run
    assert session.total_processing_time is not None
    assert round(session.total_processing_time.total_seconds() * 1000) == ran_ms
    assert summary.processing_completed_at is not None


def _metrics_agree(record: UUID) -> None:
    summary = Summary.objects.get(shell_file_id=record)
    chunks = Chunk.objects.filter(discovery_session__shell_file_id=record)
    discovery = summary.pass05_metrics
    assert (discovery is not None) is chunks.exists()
    if discovery:
        assert discovery.chunks_total == chunks.count()
        assert discovery.chunks_succeeded == chunks.filter(status="succeeded").count()
        found = Encounter.objects.filter(shell_file_id=record)
        assert discovery.encounters_detected == found.count()
    results = EncounterResult.objects.filter(shell_file_id=record)
    metrics = summary.pass1_metrics
    assert (metrics is not None) is results.exists()
    if metrics is None:
        return
    batches = Batch.objects.filter(pass1_encounter_result__shell_file_id=record)
    assert metrics.entities_detected == summary.entities_extracted_total
    assert metrics.encounters_total == results.count()
    assert metrics.encounters_succeeded == results.filter(status="succeeded").count()
    assert metrics.encounters_failed == results.filter(status="failed").count()
    assert metrics.batches_succeeded == batches.filter(status="succeeded").count()
    assert metrics.error_code == summary.error_code
    assert metrics.failure_encounter_id == summary.failure_encounter_id
