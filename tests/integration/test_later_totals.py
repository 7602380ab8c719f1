"""The totals of a record are true after every kind of end in Pass 2 and Pass 3.

Real steps make the rows. The queries 7.1 to 9.3 of the source documents are about Pass 1, which has
completed: they name the later pass and its code, and no encounter or batch of Pass 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from observability.metrics.throughput import rates
from pipeline.core.states import JobStatus, Step
from pipeline.execution import executor
from pipeline.execution.step_result import CANCELLED, StepInterrupted
from pipeline.models import (
    ClinicalMetrics,
    EnrichedEntity,
    Entity,
    Job,
    NarrativeMetrics,
    NarrativeSentence,
    Session,
    Summary,
    selectors,
)
from pipeline.models.work_tables import WORK_TABLES
from pipeline.operations import operator_actions
from pipeline.queueing.reconciler import recover_expired
from pipeline.transitions import Lease, claim, release_due
from pipeline.workers import run_step, stuck_steps
from tests.support import records, seed_sql
from tests.support.databases import as_owner
from tests.support.records import rows
from tests.support.rows import a_deadline
from tests.support.short_records import short_record

pytestmark = [
    pytest.mark.xdist_group("later-totals"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("redis_db"),
]

WORKER = "worker-1-4711-ab12cd34"
LONG_S = 2400.0
VISITS = 3
EARLIER = {
    Step.PASS2: ("pages", "pass05", "pass1"),
    Step.PASS3: ("pages", "pass05", "pass1", "pass2"),
}
RESULTS: dict[Step, Any] = {Step.PASS2: EnrichedEntity, Step.PASS3: NarrativeSentence}
METRICS: dict[Step, Any] = {Step.PASS2: ClinicalMetrics, Step.PASS3: NarrativeMetrics}
BROKEN_PAGE = 2
"""The record's own narrative cites the newest entities, which are on page 3."""


def _waiting(step: Step, folder: Path) -> UUID:
    received = records.submit(short_record(folder / "record.pdf", VISITS))
    for earlier in EARLIER[step]:
        run_step.run_step(earlier)
    return received.shell_file_id


def _two_published(step: Step, folder: Path, settings: Any) -> UUID:
    """Publish all encounters but one; the job is parked for the retry of that one."""
    settings.JOB_MAX_RETRIES = 1
    record = _waiting(step, folder)
    fault = {"fault": "bad-json", "kind": WORK_TABLES[step].task, "page": BROKEN_PAGE}
    with records.through_emulator([fault]), records.no_breaker():
        run_step.run_step(step)
    assert Job.objects.get(shell_file_id=record).status == JobStatus.PARKED
    return record


def _due_again(step: Step, folder: Path, settings: Any) -> UUID:
    record = _two_published(step, folder, settings)
    Job.objects.filter(shell_file_id=record).update(parked_until=timezone.now())
    release_due()
    return record


def _claimed(step: Step, folder: Path, settings: Any) -> Lease:
    record = _due_again(step, folder, settings)
    lease = claim(step, WORKER)
    assert lease is not None
    assert lease.shell_file_id == record
    return lease


def _failed(step: Step, folder: Path, settings: Any) -> UUID:
    record = _waiting(step, folder)
    fault = {"fault": "bad-json", "kind": WORK_TABLES[step].task, "page": BROKEN_PAGE}
    with records.through_emulator([fault]), records.no_breaker():
        run_step.run_step(step)
    return record


def _out_of_time(step: Step, folder: Path, settings: Any) -> UUID:
    record = _due_again(step, folder, settings)
    # The step has two seconds, and its only call hangs.
    with pytest.MonkeyPatch.context() as patch, records.through_emulator(latency="60/call"):
        patch.setattr(executor, "step_time_s", lambda *_, **__: 2.0)
        run_step.run_step(step)
    return record


def _stuck(step: Step, folder: Path, settings: Any) -> UUID:
    lease = _claimed(step, folder, settings)
    stuck_steps._end(*stuck_steps.leases_of(WORKER))
    return lease.shell_file_id


def _cancelled_in_its_step(step: Step, folder: Path, settings: Any) -> UUID:
    lease = _claimed(step, folder, settings)
    assert not operator_actions.job_cancel(lease.job_id).is_ended
    run_step._end(lease, a_deadline(), StepInterrupted(reason=CANCELLED))
    return lease.shell_file_id


def _cancelled_while_parked(step: Step, folder: Path, settings: Any) -> UUID:
    record = _two_published(step, folder, settings)
    assert operator_actions.job_cancel(record).is_ended
    return record


def _worker_lost(step: Step, folder: Path, settings: Any) -> UUID:
    lease = _claimed(step, folder, settings)
    for crash in range(3):
        Job.objects.filter(id=lease.job_id).update(lease_expires_at=timezone.now())
        (found,) = recover_expired(lease.job_id)
        assert found.is_dead is (crash == 2)
        claim(step, WORKER)
    return lease.shell_file_id


def _refused(step: Step, folder: Path, settings: Any) -> UUID:
    record = _waiting(step, folder)
    last = records.rows(
        "SELECT id FROM healthcare_encounters ORDER BY encounter_index DESC LIMIT 1"
    )
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE {RESULTS[step]._meta.db_table} ADD CONSTRAINT refused"
            f" CHECK (healthcare_encounter_id <> '{last[0]['id']}') NOT VALID"
        )
    run_step.run_step(step)
    return record


def _completed_after_a_retry(step: Step, folder: Path, settings: Any) -> UUID:
    record = _due_again(step, folder, settings)
    with records.through_emulator():
        run_step.run_step(step)
    return record


@dataclass(frozen=True, kw_only=True)
class LaterEnd:
    """One kind of end of a record of three encounters, and the expected figures."""

    reach: Callable[[Step, Path, Any], UUID]
    job: str
    code: str | None
    lost: tuple[tuple[str, str], ...] = ()
    """Code and underlying code of each entry of the drill-down."""
    failed: int = 0
    """Failed items in the rates; also the number of failed encounters."""
    unfinished: int = 0
    refused: int = 0
    """Encounters whose results could not be published."""


ENDS = {
    "failed item": LaterEnd(
        reach=_failed,
        job="failed",
        code="MAX_RETRIES_EXCEEDED",
        lost=(("MAX_RETRIES_EXCEEDED", "PARSE_JSON"),),
        failed=1,
    ),
    "deadline": LaterEnd(
        reach=_out_of_time,
        job="failed",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "hung beyond its deadline": LaterEnd(
        reach=_stuck,
        job="failed",
        code="DEADLINE_EXCEEDED",
        lost=(("DEADLINE_EXCEEDED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "cancelled in its step": LaterEnd(
        reach=_cancelled_in_its_step,
        job="cancelled",
        code="CANCELLED",
        lost=(("CANCELLED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "parked and then cancelled": LaterEnd(
        reach=_cancelled_while_parked,
        job="cancelled",
        code="CANCELLED",
        lost=(("CANCELLED", "PARSE_JSON"),),
        unfinished=1,
    ),
    "worker lost": LaterEnd(
        reach=_worker_lost,
        job="dead",
        code="WORKER_LOST",
        lost=(("WORKER_LOST", "PARSE_JSON"),),
        unfinished=1,
    ),
    "publication refused": LaterEnd(
        reach=_refused,
        job="failed",
        code="DB_ERROR",
        lost=(("DB_ERROR", "DB_ERROR"),),
        unfinished=1,
        refused=1,
    ),
    "completed after a retry": LaterEnd(reach=_completed_after_a_retry, job="completed", code=None),
}


@pytest.mark.parametrize("step", [Step.PASS2, Step.PASS3], ids=["pass2", "pass3"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_account_of_a_later_pass_is_true_after_every_end(
    end: LaterEnd, step: Step, tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S = settings.CALL_DEADLINE_S = LONG_S
    settings.SKIPPED_PASSES = ("pass1_5", "pass3") if step is Step.PASS2 else ("pass1_5",)

    record = end.reach(step, tmp_path, settings)

    job = Job.objects.get(shell_file_id=record)
    assert (job.status, job.error_code) == (end.job, end.code)
    _queries_are_right(str(record), step, end)
    _rows_agree(record, step, end)
    _metrics_agree(record, step, end)
    found = rates(timezone.now())
    assert (found.failed, found.unfinished) == (end.failed, end.unfinished)


def _queries_are_right(record: str, step: Step, end: LaterEnd) -> None:
    (summary,) = rows(seed_sql.SUMMARY, record)
    assert (summary["failure_stage"], summary["error_code"], summary["overall_success"]) == (
        (step, end.code, False) if end.code else (None, None, True)
    )
    assert (summary["processing_status"] == "failed") is (end.code is not None)
    path = rows(seed_sql.FULL_PATH, record, record, record)
    levels = Counter((row["level"], row["status"]) for row in path[:-1])
    assert levels == {("encounter", "succeeded"): VISITS, ("batch", "succeeded"): VISITS}
    assert (path[-1]["level"], path[-1]["error_code"]) == ("shell_file", end.code)
    for query in (seed_sql.FAILED_ENCOUNTERS, seed_sql.OUTAGE):
        assert rows(query, record) == []
    for query in (seed_sql.TRANSIENT, seed_sql.STALE_CANDIDATES):
        assert rows(query) == []


def _rows_agree(record: UUID, step: Step, end: LaterEnd) -> None:
    summary = Summary.objects.get(shell_file_id=record)
    session = Session.objects.get(shell_file_id=record)
    job = Job.objects.get(shell_file_id=record)
    listed = (summary.error_drill_down or {}).get("failures", [])
    assert [(each["error_code"], each["underlying_error"]) for each in listed] == list(end.lost)
    if end.code:
        assert (session.failure_pass, session.error_code) == (step, end.code)
        assert (session.error_context or {})["failures"] == listed
        (named,) = {each["encounter_id"] for each in listed}
        # A person who cancels a job is the cause, and no encounter is.
        where = None if end.job == "cancelled" else named
        assert session.failure_encounter_id == (where and UUID(where))
    assert session.failure_encounter_id == summary.failure_encounter_id
    passes = [getattr(session, f"{each}_status") for each in list(Step)[1:]]
    assert session.completed_steps == passes.count("completed")
    assert getattr(session, f"{step}_status") == ("failed" if end.code else "completed") or (
        end.job == "cancelled"
    )
    entities = Entity.objects.filter(shell_file_id=record, accepted=True)
    assert summary.entities_extracted_total == entities.count() > 0
    calls = selectors.call_totals(session.id)
    assert summary.total_tokens_used == calls["total_tokens"]
    assert summary.total_cost_usd == calls["cost_usd"]
    assert summary.total_processing_time_ms == sum(job.step_run_ms.values())


def _metrics_agree(record: UUID, step: Step, end: LaterEnd) -> None:
    summary = Summary.objects.get(shell_file_id=record)
    assert summary.pass1_metrics is not None
    assert summary.pass1_metrics.error_code is None
    metrics = METRICS[step].objects.get(shell_file_id=record)
    assert metrics.id == getattr(summary, f"{step}_metrics_id")
    published = RESULTS[step].objects.filter(shell_file_id=record)
    encounters = published.exclude(healthcare_encounter=None).order_by()
    done = encounters.values("healthcare_encounter").distinct().count()
    assert done == VISITS - end.failed - end.unfinished
    assert metrics.encounters_total == VISITS
    assert metrics.encounters_succeeded == done
    assert metrics.encounters_failed == end.failed + end.refused
    assert metrics.error_code == end.code
    assert metrics.failure_encounter_id == summary.failure_encounter_id
    if step is Step.PASS2:
        lost = end.failed + end.unfinished - end.refused
        assert metrics.entities_enriched == published.count()
        assert (metrics.zones_total, metrics.zones_succeeded) == (VISITS, VISITS - lost)
    else:
        supported = published.filter(supported=True).count()
        assert metrics.sentences_supported == supported > 0
