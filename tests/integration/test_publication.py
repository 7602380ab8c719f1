"""A refused publication keeps its replies, and succeeds later without a call."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from pipeline.core.states import JobStatus, WorkStatus
from pipeline.models import (
    Batch,
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
    Summary,
    ZoneResult,
)
from pipeline.operations import operator_actions
from pipeline.workers import run_step
from tests.support import records
from tests.support.databases import as_owner


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_refused_publication_keeps_the_replies_and_is_repeated_without_a_call() -> None:
    received = records.submit(records.LAB)
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE pass1_entity_detections ADD CONSTRAINT refused CHECK (false) NOT VALID"
        )

    records.run_record(received)

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "DB_ERROR")
    assert not Entity.objects.exists()
    kept = Batch.objects.filter(status=WorkStatus.SUCCEEDED, output__isnull=False)
    assert kept.exists()
    asked_once = set(kept.values_list("id", flat=True))

    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pass1_entity_detections DROP CONSTRAINT refused")
    operator_actions.record_retry(received.shell_file_id, reason="a test")
    run_step.run_step("pass1")

    job.refresh_from_db()
    assert (job.status, job.error_code) == (JobStatus.COMPLETED, None)
    summary = Summary.objects.get(shell_file_id=received.shell_file_id)
    assert (summary.overall_success, summary.error_code, summary.failure_stage) == (
        True,
        None,
        None,
    )
    assert Encounter.objects.filter(entities_published_at__isnull=True).count() == 0
    assert not Batch.objects.filter(output__isnull=False).exists()
    for batch_id in asked_once:
        assert ProviderCall.objects.filter(work_item_id=batch_id).count() == 1


@pytest.mark.usefixtures("cloned_db", "redis_db")
@pytest.mark.parametrize(
    ("table", "items", "results", "metrics"),
    [
        ("pass2_enriched_entities", ZoneResult, EnrichedEntity, ClinicalMetrics),
        ("pass3_narrative_sentences", NarrativeResult, NarrativeSentence, NarrativeMetrics),
    ],
    ids=["pass2", "pass3"],
)
def test_a_refused_encounter_of_a_later_pass_is_named_and_is_repeated_without_a_call(
    table: str, items: Any, results: Any, metrics: Any, settings: Any
) -> None:
    settings.SKIPPED_PASSES = ("pass1_5",)
    settings.CALL_DEADLINE_S = 2400.0
    step = table.partition("_")[0]
    received = records.submit(records.LAB)
    for earlier in ("pages", "pass05", "pass1", "pass2")[: 3 if step == "pass2" else 4]:
        run_step.run_step(earlier)
    refused = Encounter.objects.order_by("encounter_index")[2]
    # The database takes the results of every encounter but one.
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT refused"
            f" CHECK (healthcare_encounter_id <> '{refused.id}') NOT VALID"
        )

    run_step.run_step(step)

    job = Job.objects.get(id=received.job_id)
    session = Session.objects.get(shell_file_id=received.shell_file_id)
    summary = Summary.objects.get(shell_file_id=received.shell_file_id)
    lost = (summary.error_drill_down or {})["failures"]
    assert (job.status, job.error_code) == (JobStatus.FAILED, "DB_ERROR")
    assert (session.failure_pass, session.failure_encounter_id) == (step, refused.id)
    assert [(each["encounter_id"], each["error_code"]) for each in lost] == [
        (str(refused.id), "DB_ERROR")
    ]
    kept = items.objects.filter(status=WorkStatus.SUCCEEDED, output__isnull=False)
    assert {each.healthcare_encounter_id for each in kept} == {refused.id}
    of = items.objects.exclude(healthcare_encounter=None).order_by()
    encounters = of.values("healthcare_encounter").distinct().count()
    counted = metrics.objects.get()
    assert (counted.encounters_total, counted.encounters_failed) == (encounters, 1)
    assert counted.encounters_succeeded == encounters - 1
    shown = results.objects.exclude(healthcare_encounter=None)
    assert shown.exists()
    assert not shown.filter(healthcare_encounter=refused).exists()

    with as_owner(), connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT refused")
    asked = ProviderCall.objects.filter(step=step).count()
    operator_actions.record_retry(received.shell_file_id, reason="a test")
    run_step.run_step(step)

    job.refresh_from_db()
    counted.refresh_from_db()
    assert job.error_code is None
    assert job.current_step != step or job.status == JobStatus.COMPLETED
    assert ProviderCall.objects.filter(step=step).count() == asked
    assert shown.filter(healthcare_encounter=refused).exists()
    assert not items.objects.filter(output__isnull=False).exists()
    assert (counted.encounters_succeeded, counted.encounters_failed) == (encounters, 0)
