"""Bulk cancel, requeue, release and reset have a preview, a reason, and a guard for each item."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from observability.actions.bulk_runner import advance
from observability.models import BulkItem, BulkOperation
from observability.permissions import Role
from pipeline.core.states import JobStatus, WorkStatus
from pipeline.models import Batch, IncidentJob, Job
from pipeline.transitions.recovery import CRASH_LIMIT
from tests.support.audit_rows import audit_events
from tests.support.incident_rows import an_incident
from tests.support.large_rows import a_large_record
from tests.support.rows import a_job, a_stale_job
from tests.support.users import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Client:
    """Return a client of an operator."""
    return client_of(Role.OPERATOR)


def done(client: Client, action: str, **query: Any) -> BulkOperation:
    """Preview an action, start exactly this preview, and let the scheduler run the operation."""
    preview = client.get(reverse("admin:bulk_preview", args=[action]), query)
    fields = {**preview.context["fields"], "token": uuid4(), "reason": "as agreed"}
    response = client.post(reverse("admin:bulk_start", args=[action]), fields)
    assert response.status_code == HTTPStatus.FOUND, response.context["problem"]
    advance()
    return BulkOperation.objects.latest("created_at")


def test_all_dead_jobs_and_no_others_go_back_to_the_queue(operator: Client) -> None:
    dead = [a_job(status=JobStatus.DEAD, error_code="WORKER_LOST") for _ in range(3)]
    other = a_job(status=JobStatus.FAILED, error_code="API_5XX")

    operation = done(operator, "requeue")

    assert set(operation.items.values_list("job_id", "state")) == {
        (job.id, BulkItem.DONE) for job in dead
    }
    assert Job.objects.get(id=other.id).status == JobStatus.FAILED
    assert Job.objects.filter(status=JobStatus.PENDING).count() == len(dead)
    event = audit_events().get()
    assert (event.action, event.target_id, event.reason) == (
        "requeue",
        str(operation.id),
        "as agreed",
    )


def test_a_job_that_changed_after_the_preview_is_skipped_with_the_reason(operator: Client) -> None:
    job, finished = a_job(), a_job()
    preview = operator.get(reverse("admin:bulk_preview", args=["cancel"]), {"is": "waiting"})
    form = {**preview.context["fields"], "token": uuid4(), "reason": "a wrong batch"}
    operator.post(reverse("admin:bulk_start", args=["cancel"]), form)
    Job.objects.filter(id=finished.id).update(status=JobStatus.COMPLETED)
    late = a_job()

    advance()

    results = dict(BulkItem.objects.values_list("job_id", "state"))
    assert results == {job.id: BulkItem.DONE, finished.id: BulkItem.SKIPPED}
    assert "complete" in BulkItem.objects.get(job_id=finished.id).message
    assert Job.objects.get(id=late.id).status == JobStatus.PENDING


def test_jobs_parked_by_an_incident_are_released_and_other_waiting_jobs_are_not(
    operator: Client,
) -> None:
    incident = an_incident()
    of_it = a_job(status=JobStatus.PARKED, park_reason="down", incident=incident)
    other = a_job(
        status=JobStatus.PARKED,
        park_reason="a quota",
        parked_until=timezone.now() + timedelta(hours=1),
    )

    done(operator, "release", incident=incident.id)

    assert Job.objects.get(id=of_it.id).status == JobStatus.PENDING
    assert Job.objects.get(id=other.id).status == JobStatus.PARKED


def test_only_failures_caused_by_an_incident_are_retried(operator: Client) -> None:
    incident = an_incident()
    because, otherwise = a_large_record(encounters=1, batches=3), a_large_record(batches=3)
    job = Job.objects.get(shell_file_id=because)
    IncidentJob.objects.create(incident=incident, job=job, effect=IncidentJob.FAILED)
    page = operator.get(reverse("admin:incident", args=[incident.id]))

    done(operator, "retry", incident=incident.id)

    assert f"{reverse('admin:retry')}?incident={incident.id}" in page.content.decode()
    assert Job.objects.get(id=job.id).status == JobStatus.PENDING
    assert Job.objects.get(shell_file_id=otherwise).status == JobStatus.FAILED


def test_stale_work_is_shown_with_its_evidence_and_reset_one_or_all(operator: Client) -> None:
    one, other = a_stale_job(), a_stale_job()
    page = operator.get(reverse("admin:stale"))
    shown = page.content.decode()

    done(operator, "reset", older="600", job=one.id)
    of_one = set(_waiting())
    done(operator, "reset", older="600")

    assert "process 4711 on worker-1: cannot be checked from here" in shown
    assert "2 batches back to waiting, attempts kept" in shown
    assert of_one == {one.shell_file_id}
    assert set(_waiting()) == {one.shell_file_id, other.shell_file_id}
    assert set(Batch.objects.values_list("attempt_count", flat=True)) == {1}
    assert operator.get(reverse("admin:stale")).context["found"].stale == []


def test_a_reset_says_beforehand_when_its_job_is_dead_afterwards(operator: Client) -> None:
    goes_on, dies = a_stale_job(), a_stale_job()
    Job.objects.filter(id=dies.id).update(crash_count=CRASH_LIMIT - 1)

    page = operator.get(reverse("admin:stale"))
    effects = {each.job_id: each.effect for each in page.context["found"].stale}
    done(operator, "reset", older="600")

    assert "back to the queue, with crash 1 of 3 counted" in effects[goes_on.id]
    assert "the job becomes dead: this is crash 3 of 3" in effects[dies.id]
    assert Job.objects.get(id=goes_on.id).status == JobStatus.PENDING
    assert Job.objects.get(id=dies.id).status == JobStatus.DEAD


def test_looking_at_stale_work_changes_nothing(operator: Client) -> None:
    a_stale_job()

    preview = operator.get(reverse("admin:bulk_preview", args=["reset"]), {"older": "600"})

    assert (len(preview.context["found"].eligible), preview.context["found"].calls) == (1, 2)
    assert not _waiting()
    assert not BulkOperation.objects.exists()


def test_rows_of_the_tables_and_pages_of_the_console_lead_to_each_other(operator: Client) -> None:
    incident = an_incident()
    record = a_large_record(encounters=1, batches=2)
    batch = Batch.objects.filter(status=WorkStatus.FAILED).first()
    assert batch is not None

    rows = {
        reverse("admin:pipeline_incident_change", args=[incident.id]): reverse(
            "admin:incident", args=[incident.id]
        ),
        reverse("admin:pipeline_batch_change", args=[batch.id]): reverse(
            "admin:search", query={"q": str(batch.id)}
        ),
    }
    page = operator.get(reverse("admin:record", args=[record]), {"node": batch.id})

    for row, of_console in rows.items():
        assert of_console in operator.get(row).content.decode()
    assert reverse("admin:pipeline_batch_change", args=[batch.id]) in page.content.decode()


def _waiting() -> list[Any]:
    return list(
        Batch.objects.filter(status=WorkStatus.PENDING).values_list(
            "pass1_encounter_result__shell_file_id", flat=True
        )
    )
