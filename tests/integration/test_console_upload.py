"""Uploads in the console: taken as `process` takes them, once, bounded, and written down."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from observability.models import AuditEvent
from observability.rights import Role
from pipeline.models import ShellFile
from tests.records import LAB

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> Client:
    """Give a client of an operator."""
    user = User.objects.create_user("operator", is_staff=True)
    user.groups.add(Group.objects.get(name=Role.OPERATOR))
    client = Client()
    client.force_login(user)
    return client


def uploaded(client: Client, *files: SimpleUploadedFile, **fields: Any) -> Any:
    """Send files as the form does."""
    form = {"token": uuid4(), "patient": "MRN-7", **fields, "file": list(files)}
    return client.post(reverse("admin:upload_receive"), form)


def a_record(name: str = "jane-doe.pdf") -> SimpleUploadedFile:
    """Give a file that is a record."""
    return SimpleUploadedFile(name, LAB.read_bytes(), content_type="text/plain")


def test_good_files_are_taken_and_others_are_named_with_the_reason(operator: Client) -> None:
    other = SimpleUploadedFile("note.pdf", b"no record", content_type="application/pdf")

    page = uploaded(operator, a_record(), other)

    first, second = page.context["taken"]
    record = ShellFile.objects.get()
    assert first.record_id == record.id
    assert record.patient.reference == "MRN-7"
    assert (second.record_id, second.code) == (None, "INPUT_INVALID")
    events = AuditEvent.objects.order_by("created_at").values_list("verb", "target_id", "result")
    assert list(events) == [("upload", str(record.id), "done"), ("upload", "", "refused")]
    # A name can be a patient's.
    assert "jane" not in str(list(AuditEvent.objects.values()))
    assert list(Path(configured.FILE_UPLOAD_TEMP_DIR).iterdir()) == []


def test_the_same_form_sent_twice_is_one_record(operator: Client) -> None:
    token = uuid4()

    first = uploaded(operator, a_record(), token=token)
    second = uploaded(operator, a_record(), token=token)

    assert first.context["taken"] == second.context["taken"]
    assert ShellFile.objects.count() == 1


def test_a_request_beyond_the_limit_is_not_read(operator: Client, settings: Any) -> None:
    settings.MAX_UPLOAD_MB = 1
    large = SimpleUploadedFile("large.pdf", b"%PDF-" + bytes(3 * 1024 * 1024))

    response = uploaded(operator, large)

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert not ShellFile.objects.exists()
