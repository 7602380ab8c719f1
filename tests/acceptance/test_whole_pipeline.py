"""Passes 1.5 to 3 keep the promises of Pass 1: all or nothing, retried alone, never asked twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from gemini_emulator.recorded_rows import prove_log
from pipeline.execution.shutdown import STOP, request_stop
from pipeline.models import (
    ClinicalMetrics,
    Encounter,
    EnrichedEntity,
    Entity,
    Job,
    NarrativeMetrics,
    NarrativeResult,
    NarrativeSentence,
    ProviderCall,
    Session,
    ShellFile,
    Summary,
    ZoneResult,
)
from pipeline.operations import operator_actions
from pipeline.workers import run_step
from tests.support import records

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("whole-pipeline")]

LOST_ZONE = {"fault": "bad-json", "kind": "enrichment", "page": 2}
"""On `LAB`, the zones of page 2 fail for good."""


@pytest.fixture(autouse=True)
def _every_pass(settings: Any) -> None:
    settings.SKIPPED_PASSES = ()


def outcomes(record: UUID) -> Counter[tuple[str, str]]:
    calls = ProviderCall.objects.filter(processing_session__shell_file_id=record)
    return Counter(calls.values_list("step", "outcome"))


def encounters_with(model: Any, record: UUID) -> set[int]:
    rows = model.objects.filter(shell_file_id=record, healthcare_encounter__isnull=False)
    return set(rows.values_list("healthcare_encounter__encounter_index", flat=True))


@pytest.mark.parametrize("path", [records.LAB, records.TRAPS], ids=["lab", "traps"])
def test_a_record_leaves_every_pass_with_its_totals(path: Path) -> None:
    record = records.completed_record(path)

    session = Session.objects.get(shell_file=record)
    summary = Summary.objects.get(shell_file=record)
    enriched = EnrichedEntity.objects.filter(shell_file=record)
    clinical = ClinicalMetrics.objects.get(shell_file=record)
    narrated = NarrativeMetrics.objects.get(shell_file=record)
    told = NarrativeSentence.objects.filter(shell_file=record)
    assert record.status == "completed"
    assert {session.pass1_5_status, session.pass2_status, session.pass3_status} == {"completed"}
    assert (session.completed_steps, session.total_steps) == (5, 5)
    assert (summary.processing_status, summary.overall_success) == ("complete_pipeline", True)
    assert (summary.pass2_metrics, summary.pass3_metrics) == (clinical, narrated)
    # Each published entity is enriched once, whatever its flags.
    assert enriched.count() == Entity.objects.filter(shell_file=record).count() > 0
    assert clinical.entities_enriched == enriched.count()
    assert clinical.zones_succeeded == clinical.zones_total > 0
    assert narrated.sentences_supported == told.filter(supported=True).count() > 0
    # The local engine writes only sentences that its entities support.
    assert not told.filter(supported=False)
    assert not ZoneResult.objects.exclude(output=None)
    assert not NarrativeResult.objects.exclude(output=None)


def test_a_lost_zone_loses_its_encounter_and_keeps_the_earlier_passes() -> None:
    record = records.failed_record(records.LAB, [LOST_ZONE])

    job = Job.objects.get(shell_file=record)
    lost = {
        zone.healthcare_encounter.encounter_index
        for zone in ZoneResult.objects.filter(status="failed")
    }
    every = set(
        Encounter.objects.filter(shell_file=record).values_list("encounter_index", flat=True)
    )
    assert (record.status, job.status, job.current_step) == ("pass1_5_complete", "failed", "pass2")
    assert job.error_code == "MAX_RETRIES_EXCEEDED"
    assert lost
    assert encounters_with(EnrichedEntity, record.id) == every - lost
    assert encounters_with(Entity, record.id) == every
    assert not NarrativeResult.objects.exists()
    summary = Summary.objects.get(shell_file=record)
    assert (summary.failure_stage, summary.processing_status) == ("pass2", "failed")


def test_a_retry_asks_only_for_the_lost_zones_and_then_completes() -> None:
    record = records.failed_record(records.LAB, [LOST_ZONE])
    before = outcomes(record.id)
    lost = ZoneResult.objects.filter(status="failed").count()

    operator_actions.record_retry(record.id, reason="the fault is over")
    records.run_again(record.id)
    records.run_again(record.id)

    after = outcomes(record.id)
    assert after["pass2", "OK"] - before["pass2", "OK"] == lost
    assert after["pass1", "OK"] == before["pass1", "OK"]
    assert after["pass3", "OK"] == NarrativeResult.objects.count() > 0
    assert ShellFile.objects.get(id=record.id).status == "completed"
    accepted = ProviderCall.objects.filter(step="pass2", accepted=True)
    assert accepted.count() == ZoneResult.objects.count()


def test_a_stopped_worker_repeats_no_zone_that_was_answered(settings: Any) -> None:
    settings.PASS1_CONCURRENCY_LIMIT = 1
    received = records.submit(records.LAB)
    for step in ("pages", "pass05", "pass1", "pass1_5"):
        run_step.run_step(step)
    with records.through_emulator(latency="0.05/call") as emulator:
        request_stop()
        run_step.run_step("pass2")
        STOP.reset()
        half = ZoneResult.objects.filter(status="succeeded").count()
        for step in ("pass2", "pass3"):
            run_step.run_step(step)
        proof = prove_log(emulator.log())

    assert half < ZoneResult.objects.count()
    assert Job.objects.get(id=received.job_id).status == "completed"
    zones = {zone.id.hex for zone in ZoneResult.objects.all()}
    assert not [finding for finding in proof.findings if any(zone in finding for zone in zones)]


def test_a_pass_that_is_switched_off_is_skipped(settings: Any) -> None:
    settings.SKIPPED_PASSES = ("pass1_5",)
    without_codes = records.completed_record(records.LAB)
    settings.SKIPPED_PASSES = ("pass2", "pass3")
    without_attributes = records.completed_record(records.TRAPS)

    first = Session.objects.get(shell_file=without_codes)
    second = Session.objects.get(shell_file=without_attributes)
    assert (first.pass1_5_status, first.pass2_status, first.pass3_status) == (
        "skipped", "completed", "completed",
    )  # fmt: skip
    assert (second.pass1_5_status, second.pass2_status, second.pass3_status) == (
        "completed", "skipped", "skipped",
    )  # fmt: skip
    assert without_attributes.status == "pass1_5_complete"
    assert Job.objects.get(shell_file=without_attributes).status == "completed"


def test_a_pdf_is_sent_with_the_zones_of_whole_pages_only(settings: Any) -> None:
    settings.PASS_INPUT = "pdf"

    with records.through_emulator() as emulator:
        records.completed_record(records.LAB)
        asked = [line for line in emulator.log() if line.kind == "enrichment"]

    shared = {
        page
        for page in range(1, 6)
        if Encounter.objects.filter(page_start__lte=page, page_end__gte=page).count() > 1
    }
    assert any(line.attached_pages for line in asked)
    assert all(line.attached_pages == 0 for line in asked if set(line.pages) <= shared)
