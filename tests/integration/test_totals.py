"""The totals of a record are true after every kind of end, and the agreed queries say so.

Real steps make the rows. One path writes the totals, so each end of the table meets the same
checks: the queries 7.1 to 9.3, the summary, the metrics of each pass, and the overview.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.utils import timezone

from observability.metrics.throughput import rates
from pipeline.core.states import Step
from pipeline.models import (
    Batch,
    Chunk,
    Encounter,
    EncounterResult,
    Entity,
    Job,
    ProviderCall,
    Session,
    Summary,
    selectors,
)
from tests.support import seed_sql
from tests.support.record_ends import ENDS, End
from tests.support.records import rows

pytestmark = [
    pytest.mark.xdist_group("totals"),
    pytest.mark.django_db,
    pytest.mark.usefixtures("redis_db"),
]

LONG_S = 2400.0


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
