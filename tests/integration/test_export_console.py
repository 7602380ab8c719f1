"""The console's download of an export: rights, refusals, and the audit."""

from __future__ import annotations

import io
import json
import zipfile
from http import HTTPStatus
from typing import Any

import pytest
from arro3.io import read_parquet
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from observability.permissions import Right, Role
from pipeline.core.states import JobStatus
from pipeline.models import Encounter, Job
from tests.support.audit_rows import audit_events
from tests.support.clinical_rows import clinical_rows
from tests.support.rows import a_job, an_encounter


@pytest.fixture
def job(cloned_db: str) -> Job:
    """Insert a completed record of one encounter with results of all passes."""
    made = a_job(status=JobStatus.COMPLETED)
    an_encounter(made)
    encounter = Encounter.objects.get(shell_file_id=made.shell_file_id)
    clinical_rows(encounter)
    Encounter.objects.update(entities_published_at=encounter.created_at)
    return made


def a_client(*rights: Right, role: Role | None = None) -> Client:
    user = User.objects.create_user("r", is_staff=True)
    if role:
        user.groups.set(Group.objects.filter(name=role))
    user.user_permissions.set(
        Permission.objects.filter(codename__in=[right.value for right in rights])
    )
    client = Client()
    client.force_login(user)
    return client


def get(client: Client, job: Job, **query: str) -> Any:
    return client.get(reverse("admin:record_export", args=[job.shell_file_id]), query)


@pytest.mark.parametrize("form", ["fhir", "html", "csv"])
def test_a_reviewer_downloads_a_file_that_no_browser_opens_in_the_console(
    job: Job, form: str
) -> None:
    response = get(a_client(role=Role.REVIEWER), job, format=form)

    content = b"".join(response.streaming_content)
    assert response.status_code == HTTPStatus.OK
    assert response["Content-Disposition"].startswith("attachment; filename=")
    assert str(job.shell_file_id) in response["Content-Disposition"]
    assert "no-store" in response["Cache-Control"]
    assert int(response["Content-Length"]) == len(content)
    assert b"metoprolol" in content
    (event,) = audit_events()
    assert (event.action, event.target_id, event.actor) == ("export", str(job.shell_file_id), "r")
    assert event.facts["format"] == form


def test_a_pair_is_an_archive_with_both_files_of_one_generation(job: Job) -> None:
    response = get(a_client(role=Role.REVIEWER), job, format="pair")

    archive = zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content)))
    parquet, text = archive.namelist()
    rows = read_parquet(io.BytesIO(archive.read(parquet))).read_all()
    assert set(rows["generation"].to_pylist()) == {json.loads(archive.read(text))["generation"]}


@pytest.mark.parametrize("rights", [[Right.VIEW], [Right.READ_PHI], [Right.EXPORT]])
def test_an_export_needs_both_rights(job: Job, rights: list[Right]) -> None:
    response = get(a_client(*rights), job, format="csv")

    assert response.status_code == HTTPStatus.FORBIDDEN
    assert not audit_events().exclude(result="refused")


def test_an_incomplete_record_is_refused_in_one_line_unless_asked_for(job: Job) -> None:
    Job.objects.update(status=JobStatus.FAILED)
    client = a_client(role=Role.REVIEWER)

    refused = get(client, job, format="csv")
    allowed = get(client, job, format="csv", incomplete="on")

    assert refused.status_code == HTTPStatus.CONFLICT
    assert refused.content.decode().endswith("(RECORD_INCOMPLETE)")
    assert "Record incomplete" in b"".join(allowed.streaming_content).decode()
    assert [event.result for event in audit_events()] == ["refused", "done"]


def test_an_unknown_format_is_refused(job: Job) -> None:
    response = get(a_client(role=Role.REVIEWER), job, format="xml")

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.content.decode().endswith("(VALUE_INVALID)")
