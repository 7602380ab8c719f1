"""A refused publication keeps its replies, and succeeds later without a call."""

from __future__ import annotations

import pytest
from django.db import connection

from pipeline.core.states import JobStatus, WorkStatus
from pipeline.models import Batch, Encounter, Entity, Job, ProviderCall, Summary
from pipeline.operations import operator_actions
from pipeline.workers import run_step
from tests.support import records
from tests.support.databases import as_owner

pytestmark = pytest.mark.usefixtures("long_lease")


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
