"""The admin shows every table to readers with the right, changes nothing, and shows no PHI."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection, models
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from observability.admin.base import COUNTED, CappedPaginator, ReadOnlyAdmin
from pipeline.models import Batch, Job, ShellFile
from tests.support import records

MODELS = sorted(apps.get_app_config("pipeline").get_models(), key=lambda model: model.__name__)
EMPTY = {
    "CascadeChain", "ClinicalMetrics", "Code", "CodeCandidate", "CodeEntry", "CodeSystem",
    "CodeTerm", "CodeVector", "CodeWord", "EnrichedEntity", "ExtractionFlight", "FileSweep",
    "Incident", "IncidentJob", "KeptReply", "LockedField", "NarrativeMetrics", "NarrativeResult",
    "NarrativeSentence", "Pause", "PeriodicTaskRun", "ProcessedDocument", "RateLimitCounts",
    "RecordBatch", "RecordListItem", "Reuse", "ReviewDecision", "ZoneResult",
}  # fmt: skip


@pytest.fixture
def operator(db: None) -> Client:
    """Return a logged-in client with every right."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator", password="for-tests-only"))
    return client


def _words_of_the_record() -> set[str]:
    truth = json.loads(records.TRAPS.with_suffix(".truth.json").read_text())
    users = [truth["patient"]["name"], truth["patient"]["identifier"], records.TRAPS.name]
    facilities = [encounter["facility"] for encounter in truth["encounters"]]
    quotes = [
        entity["quote"] for encounter in truth["encounters"] for entity in encounter["entities"]
    ]
    return {word for word in [*users, *facilities, *quotes] if word and len(word) > 6}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.__name__))
def test_every_table_is_registered_and_read_only(model: type[models.Model]) -> None:
    registered = admin.site.get_model_admin(model)
    request = RequestFactory().get("/")

    assert isinstance(registered, ReadOnlyAdmin)
    assert not registered.has_add_permission(request)
    assert not registered.has_change_permission(request)
    assert not registered.has_delete_permission(request)
    assert registered.show_full_result_count is False


def test_status_columns_are_not_editable() -> None:
    columns = [
        field
        for model in MODELS
        for field in model._meta.fields
        if field.name.endswith("status") and field.choices
    ]

    assert len(columns) > 10
    assert [str(field) for field in columns if field.editable] == []


def test_lists_and_pages_show_a_record_without_its_words(operator: Client) -> None:
    records.completed_record(records.TRAPS)
    words = _words_of_the_record()

    for model in MODELS:
        base = f"admin:pipeline_{model._meta.model_name}"
        listed = operator.get(reverse(f"{base}_changelist"))
        assert listed.status_code == HTTPStatus.OK, model
        pages = [listed]
        row = model._default_manager.first()
        assert (row is None) == (model.__name__ in EMPTY), model
        if row is not None:
            pages.append(operator.get(reverse(f"{base}_change", args=[row.pk])))
        for page in pages:
            assert page.status_code == HTTPStatus.OK, model
            shown = page.content.decode()
            assert not [word for word in words if word in shown], model


def test_a_list_reads_neither_phi_nor_payloads(operator: Client) -> None:
    records.completed_record()

    with CaptureQueriesContext(
        connection,
    ) as asked:
        operator.get(reverse("admin:pipeline_batch_changelist"))

    read = [q["sql"] for q in asked if 'FROM "pass1_batch_results"' in q["sql"]]
    assert read
    assert not [sql for sql in read if '"output"' in sql or "transient_error_history" in sql]


def test_a_search_finds_rows_by_exact_id_alone(operator: Client) -> None:
    record = records.completed_record()
    batch = Batch.objects.filter(pass1_encounter_result__shell_file=record)[0]
    url = reverse("admin:pipeline_batch_changelist")

    def found(text: str) -> Any:
        return operator.get(url, {"q": text}).context["cl"].result_count

    assert found(str(batch.id)) == 1
    assert found(str(batch.healthcare_encounter_id)) == 1
    assert found("lisinopril") == 0


def test_no_row_is_added_changed_or_deleted_by_hand(operator: Client) -> None:
    record = records.completed_record()
    job = Job.objects.get(shell_file=record)

    statuses = [
        operator.get(reverse("admin:pipeline_job_add")).status_code,
        operator.post(
            reverse("admin:pipeline_job_change", args=[job.id]), {"status": "pending"}
        ).status_code,
        operator.post(
            reverse("admin:pipeline_job_delete", args=[job.id]), {"post": "yes"}
        ).status_code,
    ]

    assert statuses == [HTTPStatus.FORBIDDEN] * 3
    assert Job.objects.get(id=job.id).status == "completed"


@pytest.mark.django_db
def test_a_count_stops_at_the_cap() -> None:
    rows = ShellFile.objects.order_by("-created_at")

    with CaptureQueriesContext(connection) as asked:
        count = CappedPaginator(rows, 50).count

    assert count == 0
    assert f"LIMIT {COUNTED}" in asked[0]["sql"]
